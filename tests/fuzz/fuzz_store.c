/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The store's files hold anything: paths.json, and after a line "--" the
 * record KEY "ab". They are looked up, all of them and one, and forgotten.
 * "@BOOT@" stands for the boot id, without which no record is looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/verdict/store.h"
#include "tests/fuzz/fuzz.h"

#define BOOT "@BOOT@"
#define MOUNT "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"

static char dir[64];
static char boot_id[64];

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s%s", dir, name);
	return path;
}

static void clean(void)
{
	unlink(in_dir("/verdicts/ab.json"));
	unlink(in_dir("/paths.json"));
	unlink(in_dir("/lock"));
	unlink(in_dir("/mountinfo"));
	rmdir(in_dir("/verdicts"));
	rmdir(in_dir(""));
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);
	const uint8_t *boot = memmem(data, size, BOOT, strlen(BOOT));
	size_t before = boot != NULL ? (size_t)(boot - data) : size;
	FILE *f = NULL;

	fuzz_assert(fd != -1);
	f = fdopen(fd, "w");
	fuzz_assert(f != NULL);
	fwrite(data, 1, before, f);
	if (boot != NULL) {
		fputs(boot_id, f);
		boot += strlen(BOOT);
		fwrite(boot, 1, (size_t)(data + size - boot), f);
	}
	fclose(f);
}

static void make_dir(void)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	fuzz_assert(f != NULL);
	fuzz_assert(fgets(boot_id, sizeof(boot_id), f) != NULL);
	boot_id[strcspn(boot_id, "\n")] = '\0';
	fclose(f);
	snprintf(dir, sizeof(dir), "/dev/shm/fuzz_store.XXXXXX");
	fuzz_assert(mkdtemp(dir) != NULL);
	fuzz_assert(mkdir(in_dir("/verdicts"), 0700) == 0);
	atexit(clean);
	write_file("/mountinfo", (const uint8_t *)MOUNT, strlen(MOUNT));
}

static void each(const char *path, int err, const struct stored_record *record,
		 void *private_data)
{
	unsigned i;

	(void)private_data;
	fuzz_assert(path != NULL && (err == 0) == (record != NULL));
	for (i = 0; record != NULL && i < USE_COUNT; i++) {
		const struct stored_use *use = &record->uses[i];

		stored_use_fresh(use, 1700000000, STORE_FRESH_S);
		fuzz_assert(!use->present || use->because != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *mark = memmem(data, size, "\n--\n", 4);
	size_t first = mark != NULL ? (size_t)(mark - data) : size;
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	struct stored_record *record = NULL;
	char mountinfo[128];

	if (dir[0] == '\0') {
		make_dir();
	}
	snprintf(mountinfo, sizeof(mountinfo), "%s", in_dir("/mountinfo"));
	write_file("/paths.json", data, first);
	if (mark != NULL) {
		write_file("/verdicts/ab.json", mark + 4, size - first - 4);
	}
	store_each(mem_ctx, dir, mountinfo, each, NULL);
	store_lookup(mem_ctx, dir, mountinfo, "/srv", &record);
	store_forget(dir, "/srv");
	talloc_free(mem_ctx);
	return 0;
}
