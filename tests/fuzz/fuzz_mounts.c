/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mountinfo: one line, and all of it as a file */
#include <sys/mman.h>
#include <unistd.h>

#include "core/member/mounts.h"
#include "tests/fuzz/fuzz.h"

static void as_line(const char *text)
{
	struct mount_line *mount = NULL;
	int ret;

	ret = mount_line_parse(NULL, text, &mount);
	if (ret == 0) {
		fuzz_assert(mount->point != NULL && mount->fstype != NULL &&
			    mount->source != NULL &&
			    mount->super_options != NULL);
		fuzz_assert(strcmp(mount->line, text) == 0);
		talloc_free(mount);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	char *text = fuzz_text(data, size);
	struct mount_line *mount = NULL;
	struct mount_line **like = NULL;
	char path[64];
	ssize_t n = 0;
	int fd, ret;

	as_line(text);
	free(text);
	fd = memfd_create("mountinfo", MFD_CLOEXEC);
	fuzz_assert(fd != -1);
	if (size > 0) {
		n = pwrite(fd, data, size, 0);
	}
	fuzz_assert(n == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mount_by_id(mem_ctx, path, 1, &mount);
	ret = mount_by_path(mem_ctx, path, "/mnt/a", &mount);
	if (ret == 0) {
		ret = mounts_like(mem_ctx, path, mount, &like);
		fuzz_assert(ret != 0 || like[0] != NULL);
	}
	close(fd);
	talloc_free(mem_ctx);
	return 0;
}
