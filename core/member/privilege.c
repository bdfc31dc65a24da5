/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/member/privilege.h"
#include "core/probe/probe.h"

/* Slots, the place and its directories, /proc, the supervisor */
#define DESCRIPTORS (PROBE_SLOTS + 64)

/* Reading and writing whatever the modes say, and beyond a quota */
static const unsigned kept[] = {
	CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_SYS_RESOURCE,
};

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {};
	uint32_t mask = 0;
	size_t i;
	long ret;

	ret = syscall(SYS_capget, &header, caps);
	if (ret == -1) {
		return;
	}
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		mask |= 1U << kept[i];
	}
	caps[0].permitted &= mask;
	caps[0].effective &= mask;
	caps[0].inheritable = 0;
	caps[1] = (struct __user_cap_data_struct){};
	syscall(SYS_capset, &header, caps);
}

static void lower_limit(int resource, rlim_t most)
{
	struct rlimit limit = {};
	int ret;

	ret = getrlimit(resource, &limit);
	if (ret == -1 || limit.rlim_max <= most) {
		return;
	}
	setrlimit(resource, &(struct rlimit){ most, most });
}

void privilege_drop(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	lower_limit(RLIMIT_CORE, 0);
	lower_limit(RLIMIT_NOFILE, DESCRIPTORS);
	drop_capabilities();
}
