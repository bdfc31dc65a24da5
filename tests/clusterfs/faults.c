/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#define NEVER UINT64_MAX

struct fault;

/*
 * One kind of fault. Filters and counters are looked at in the first point
 * of "at" only ("counted"); at the others only member and time are.
 */
struct fault_type {
	const char *name;
	const char *class;	/* in the catalogue of faults */
	unsigned int at;	/* fault points */
	unsigned int counted;	/* the one where filters apply */
	unsigned int ops;	/* unless op= says otherwise */
	const char *keys;	/* of its own, each followed by a blank */
	const char *what;
	void (*hook)(struct fault *fault, struct event *ev);
};

struct fault {
	LIST_ENTRY(fault) entry;
	unsigned int id;
	const struct fault_type *type;
	char *text;		/* as given */
	char *params;		/* the same, cut up: KEY\0VALUE\0...\0 */

	uint64_t members;	/* bit mask */
	unsigned int ops;
	unsigned int families;
	int64_t first, last;
	int64_t size_min, size_max;
	double probability;
	uint64_t after;		/* matches that are left alone */
	uint64_t count;		/* hits at most */
	uint64_t load;		/* matches a second at least */
	uint64_t held;		/* locks held on the file at least */
	bool contended;
	uint64_t begins, ends;	/* us */
	uint64_t random;	/* state of the generator */

	uint64_t matched;
	uint64_t hits;
	uint64_t second, in_second, in_last_second;

	/* state of the hooks */
	uint64_t next_free;
	uint64_t last_seen[MAX_MEMBERS];
	struct timer *timer;
};

static LIST_HEAD(, fault) active = LIST_HEAD_INITIALIZER(active);

static const char *param(const struct fault *fault, const char *key)
{
	const char *p = fault->params;

	while (*p != '\0') {
		const char *value = p + strlen(p) + 1;
		int cmp = strcmp(p, key);

		if (cmp == 0) {
			return value;
		}
		p = value + strlen(value) + 1;
	}
	return NULL;
}

static double param_number(const struct fault *fault, const char *key,
			   double otherwise)
{
	const char *value = param(fault, key);

	return value == NULL ? otherwise : strtod(value, NULL);
}

static uint64_t param_us(const struct fault *fault, const char *key)
{
	return param_number(fault, key, 0) * 1000000;
}

static bool param_is(const struct fault *fault, const char *key,
		     const char *value)
{
	const char *v = param(fault, key);

	return v != NULL && strcmp(v, value) == 0;
}

/* Is word one of value's, which are joined by '+'? */
static bool param_has(const struct fault *fault, const char *key,
		      const char *word, bool otherwise)
{
	const char *p = param(fault, key);
	size_t len = strlen(word);

	if (p == NULL) {
		return otherwise;
	}
	while (true) {
		size_t n = strcspn(p, "+");

		if (n == len && strncmp(p, word, n) == 0) {
			return true;
		}
		if (p[n] == '\0') {
			return false;
		}
		p += n + 1;
	}
}

/*
 * The hooks
 */

static const struct {
	const char *name;
	int value;
} errors[] = {
	{ "EACCES", EACCES },
	{ "EAGAIN", EAGAIN },
	{ "EBADF", EBADF },
	{ "EDEADLK", EDEADLK },
	{ "EDQUOT", EDQUOT },
	{ "EFBIG", EFBIG },
	{ "EINTR", EINTR },
	{ "EINVAL", EINVAL },
	{ "EIO", EIO },
	{ "ENODEV", ENODEV },
	{ "ENOENT", ENOENT },
	{ "ENOLCK", ENOLCK },
	{ "ENOMEM", ENOMEM },
	{ "ENOSPC", ENOSPC },
	{ "ENOSYS", ENOSYS },
	{ "ENOTCONN", ENOTCONN },
	{ "ENOTSUP", ENOTSUP },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{ "EOVERFLOW", EOVERFLOW },
	{ "EPERM", EPERM },
	{ "EREMOTEIO", EREMOTEIO },
	{ "EROFS", EROFS },
	{ "ESTALE", ESTALE },
	{ "ETIMEDOUT", ETIMEDOUT },
};

static int error_number(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		int cmp = strcmp(errors[i].name, name);

		if (cmp == 0) {
			return errors[i].value;
		}
	}
	return atoi(name);
}

static void hook_local(struct fault *fault, struct event *ev)
{
	(void)fault;
	ev->lock->local = true;
}

static void hook_nothing(struct fault *fault, struct event *ev)
{
	(void)fault;
	ev->nothing = true;
}

static void hook_error(struct fault *fault, struct event *ev)
{
	const char *name = param(fault, "errno");

	ev->error = name == NULL ? ENOLCK : error_number(name);
}

static void hook_hang(struct fault *fault, struct event *ev)
{
	ev->hang = true;
	ev->interruptible = param_number(fault, "killable", 1) != 0;
	ev->resume = param_number(fault, "resume", 0) != 0;
	ev->fault_id = fault->id;
}

static void hook_coarse(struct fault *fault, struct event *ev)
{
	int64_t unit = param_number(fault, "unit", 4096);

	if (ev->family == FAMILY_FLOCK) {
		return;
	}
	if (unit <= 0) {
		ev->lock->start = 0;
		ev->lock->end = INT64_MAX;
		return;
	}
	ev->lock->start -= ev->lock->start % unit;
	if (ev->lock->end <= INT64_MAX - unit) {
		ev->lock->end += unit - 1 - ev->lock->end % unit;
	}
}

static void hook_stuck(struct fault *fault, struct event *ev)
{
	static const struct {
		enum drop_cause cause;
		const char *name;
	} causes[] = {
		{ DROP_CLOSE, "close" },
		{ DROP_EXIT, "exit" },
		{ DROP_KILL, "kill" },
		{ DROP_DEATH, "death" },
		{ DROP_CANCEL, "cancel" },
	};
	size_t i;

	for (i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		bool meant = param_has(fault, "on", causes[i].name, true);

		if (meant && causes[i].cause == ev->cause) {
			ev->keep = true;
			ev->keep_us = param_us(fault, "seconds");
		}
	}
}

static void hook_no_wakeup(struct fault *fault, struct event *ev)
{
	ev->pass_over = true;
	ev->until_asked = !param_is(fault, "until", "never");
}

static void hook_lost(struct fault *fault, struct event *ev)
{
	bool restart = param_is(fault, "how", "restart");
	bool lease = param_is(fault, "how", "lease");
	bool many = param_is(fault, "how", "max");
	bool foreign = param_is(fault, "how", "foreign");
	unsigned int max = param_number(fault, "max", 256);

	if (ev->held != NULL) {
		ev->lose_held = !restart && !lease && !many && !foreign;
	} else if (restart) {
		lock_lose_all();
	} else if (lease) {
		ev->lock->lifetime_us = param_us(fault, "seconds");
	} else if (many && ev->op != OP_UNLOCK &&
		   ev->lock->file->num_locks >= max) {
		lock_lose_oldest(ev->lock->file);
	} else if (foreign && ev->op == OP_UNLOCK) {
		ev->any_owner = true;
	}
}

static void hook_mixed_owner(struct fault *fault, struct event *ev)
{
	bool node = param_is(fault, "how", "node");

	if (ev->lock == NULL) {
		ev->any_owner = !node;
	} else if (node) {
		ev->lock->owner = 0;
	}
}

static void hook_stale(struct fault *fault, struct event *ev)
{
	ev->stale = true;
	ev->stale_us = param_us(fault, "seconds");
	ev->until_reopen = param_is(fault, "until", "reopen");
	ev->stale_from = fault->first;
	ev->stale_to = fault->last;
}

static void hook_append(struct fault *fault, struct event *ev)
{
	(void)fault;
	ev->at_offset = true;
}

static void hook_mmap_incoherent(struct fault *fault, struct event *ev)
{
	bool local = param_is(fault, "scope", "local");

	ev->mmap_mode = local ? MMAP_PRIVATE : MMAP_CACHED;
}

static void hook_mmap_refused(struct fault *fault, struct event *ev)
{
	(void)fault;
	ev->mmap_mode = MMAP_REFUSED;
}

static void hook_ids(struct fault *fault, struct event *ev)
{
	uint64_t salt = ev->member->index + 1;
	bool each_open = param_is(fault, "ino", "open");

	if (each_open) {
		salt = ev->inode->times_opened;
	}
	ev->st->st_ino ^= salt << 40;
}

static void hook_source(struct fault *fault, struct event *ev)
{
	(void)fault;
	ev->other_source = true;
}

static void hook_slow(struct fault *fault, struct event *ev)
{
	double rate = param_number(fault, "rate", 0);
	uint64_t us = param_number(fault, "ms", 0) * 1000;
	uint64_t more = param_number(fault, "ms_per_member", 0) * 1000;
	uint64_t now = now_us();
	int i;

	fault->last_seen[ev->member->index] = now;
	for (i = 0; i < MAX_MEMBERS && more != 0; i++) {
		uint64_t seen = fault->last_seen[i];

		if (seen != 0 && now - seen < 1000000) {
			us += more;
		}
	}
	if (rate > 0) {
		if (fault->next_free < now) {
			fault->next_free = now;
		}
		us += fault->next_free - now;
		fault->next_free += 1000000 / rate;
	}
	ev->delay_us += us;
}

static void hook_unfair(struct fault *fault, struct event *ev)
{
	int favourite = param_number(fault, "favourite", 0);
	uint64_t patience = param_number(fault, "ms", 50) * 1000;
	uint64_t now = now_us();
	uint64_t seen = fault->last_seen[favourite];

	if (ev->member->index == favourite) {
		fault->last_seen[favourite] = now;
	} else if (seen != 0 && now - seen < patience) {
		ev->delay_us = patience - (now - seen);
	}
}

static void hook_getlk(struct fault *fault, struct event *ev)
{
	bool own = param_is(fault, "how", "own");
	bool range = param_is(fault, "how", "range");
	bool type = param_is(fault, "how", "type");
	bool held = ev->lock->type != F_UNLCK;

	if (own && !held) {
		lock_find_own(ev->lock);
	} else if (range && held) {
		ev->lock->start = 0;
		ev->lock->end = INT64_MAX;
	} else if (type && held) {
		ev->lock->type = ev->lock->type == F_RDLCK ? F_WRLCK : F_RDLCK;
	} else if (!own && !range && !type) {
		ev->lock->type = F_UNLCK;
	}
}

static int64_t mask_offset(int64_t offset, int bits)
{
	if (offset == INT64_MAX) {
		return offset;
	}
	return offset & ((UINT64_C(1) << bits) - 1);
}

static void hook_offset_bits(struct fault *fault, struct event *ev)
{
	int bits = param_number(fault, "bits", 32);
	bool refuse = param_is(fault, "how", "refuse");
	struct lock *lock = ev->lock;
	int64_t start = mask_offset(lock->start, bits);
	int64_t end = mask_offset(lock->end, bits);

	if (start == lock->start && end == lock->end) {
		return;
	}
	if (refuse) {
		ev->error = EOVERFLOW;
		return;
	}
	lock->start = start;
	lock->end = end < start ? INT64_MAX : end;
}

static void hook_confused(struct fault *fault, struct event *ev)
{
	struct lock own = *ev->lock;
	struct lock *lock = ev->lock;

	own.type = F_UNLCK;
	lock_find_own(&own);
	if (lock->type == F_UNLCK) {
		if (param_is(fault, "how", "unlock")) {
			lock->start = 0;
			lock->end = INT64_MAX;
		}
		return;
	}
	if (lock->type == F_WRLCK) {
		return;
	}
	if (param_is(fault, "how", "downgrade")) {
		lock->type = own.type == F_UNLCK ? F_RDLCK : F_UNLCK;
	} else if (param_is(fault, "how", "readers")) {
		ev->nothing = own.type == F_UNLCK;
	} else if (!param_is(fault, "how", "unlock")) {
		lock->type = F_WRLCK;
	}
}

static void hook_half(struct fault *fault, struct event *ev)
{
	(void)fault;
	ev->size -= ev->size / 2;
}

static void hook_read_only(struct fault *fault, struct event *ev)
{
	(void)fault;
	if (ev->writing) {
		ev->error = EROFS;
	}
}

static void hook_full(struct fault *fault, struct event *ev)
{
	(void)fault;
	if (ev->writing && ev->op != OP_OPEN) {
		ev->error = ENOSPC;
	}
}

static void hook_quota(struct fault *fault, struct event *ev)
{
	(void)fault;
	if (ev->writing && ev->op != OP_OPEN) {
		ev->error = EDQUOT;
	}
}

static void gone(void *data)
{
	struct member *member = member_find((intptr_t)data);

	if (member != NULL) {
		member_remove(member);
	}
}

/* Not from within a request of that member. */
static void hook_gone(struct fault *fault, struct event *ev)
{
	(void)fault;
	timer_add(0, gone, (void *)(intptr_t)ev->member->index);
	ev->error = ENOTCONN;
}

static void hook_replaced(struct fault *fault, struct event *ev)
{
	bool vanish = param_is(fault, "how", "vanish");

	if (ev->inode != NULL && ev->inode->file->mode == S_IFREG) {
		file_replace(ev->inode->file, vanish);
	}
}

#define OP_CHANGES (OP_SETATTR | OP_OPEN | OP_CREATE | OP_WRITE | OP_MKDIR | \
		    OP_UNLINK | OP_RMDIR | OP_RENAME | OP_LINK | OP_XATTR | \
		    OP_OTHER)
#define OP_GROWS (OP_SETATTR | OP_CREATE | OP_WRITE | OP_MKDIR | OP_LINK | \
		  OP_XATTR | OP_OTHER)
#define OP_ANY UINT32_MAX

static const struct fault_type types[] = {
	{ "local-locks", "F1", AT_LOCK, AT_LOCK, OP_ALL_LOCK, "",
	  "a lock is seen by its own member only", hook_local },
	{ "noop-locks", "F2", AT_LOCK, AT_LOCK, OP_ALL_LOCK, "",
	  "a lock call succeeds and does nothing", hook_nothing },
	{ "kernel-locks", "F1", AT_MOUNT, AT_MOUNT, OP_ANY, "",
	  "lock calls stay in the kernel of their node, as on a FUSE file "
	  "system without lock operations; set before mounting",
	  hook_nothing },
	{ "error", "F3", AT_REQUEST, AT_REQUEST, OP_LOCK, "errno ",
	  "a call fails: errno=NAME (ENOLCK)", hook_error },
	{ "hang", "F4", AT_REQUEST, AT_REQUEST, OP_LOCK, "killable resume ",
	  "a call is not answered until the fault is cleared, then with EIO, "
	  "or (resume=1) as if nothing had been; killable=0: SIGKILL leaves "
	  "it in D state", hook_hang },
	{ "coarse-locks", "F5", AT_LOCK, AT_LOCK, OP_ALL_LOCK, "unit ",
	  "a lock takes the blocks that it touches: unit=BYTES (4096), 0 is "
	  "the whole file", hook_coarse },
	{ "stuck-locks", "F6", AT_DROP, AT_DROP, OP_ANY, "on seconds ",
	  "a lock outlives its holder: on=close+exit+kill+death+cancel (all), "
	  "seconds=T (for ever)", hook_stuck },
	{ "no-wakeup", "F7", AT_WAKE, AT_WAKE, OP_ANY, "until ",
	  "a waiter is not woken until=asked (somebody asks for a lock on "
	  "the file) or until=never", hook_no_wakeup },
	{ "lost-locks", "F8", AT_LOCK | AT_CONFLICT, AT_LOCK | AT_CONFLICT,
	  OP_ALL_LOCK, "how seconds max ",
	  "a held lock is lost: how=conflict (to whoever asks for it), "
	  "restart (all of them), lease (seconds=T after it was granted), "
	  "max (the oldest of more than max=N on a file), foreign (by "
	  "another owner's unlock)", hook_lost },
	{ "confused-locks", "F8", AT_LOCK, AT_LOCK, OP_LOCK | OP_UNLOCK,
	  "how ", "a read lock excludes readers (how=shared), holds nothing "
	  "(readers) or ends the write lock that it should downgrade "
	  "(downgrade); an unlock frees all that its owner has on the file "
	  "(unlock)", hook_confused },
	{ "mixed-owner", "F9", AT_LOCK | AT_FLUSH, AT_LOCK | AT_FLUSH,
	  OP_ANY, "how ",
	  "owners are mixed up: how=close (any close of a shared descriptor "
	  "drops its locks) or node (all processes of a member are one)",
	  hook_mixed_owner },
	{ "stale-data", "F10", AT_READ | AT_SEE_DATA, AT_READ, OP_ANY,
	  "seconds until ",
	  "the member reads old data: for seconds=T (for ever), until=reopen; "
	  "offset= and size= say which reads and bytes", hook_stale },
	{ "stale-size", "F10", AT_SEE_SIZE, AT_SEE_SIZE, OP_ANY,
	  "seconds until ",
	  "the member sees the old size: seconds=T, until=reopen",
	  hook_stale },
	{ "stale-names", "F10", AT_SEE_NAME, AT_SEE_NAME, OP_ANY, "seconds ",
	  "the member sees names as they were: seconds=T", hook_stale },
	{ "lost-writes", "F10", AT_WRITE, AT_WRITE, OP_ANY, "",
	  "a write succeeds and does nothing", hook_nothing },
	{ "torn-writes", "F10", AT_WRITE, AT_WRITE, OP_ANY, "",
	  "a write succeeds and only its first half is there", hook_half },
	{ "append-overwrites", "F10", AT_WRITE, AT_WRITE, OP_ANY, "",
	  "O_APPEND writes where the member last saw the end", hook_append },
	{ "mmap-incoherent", "F11", AT_OPEN, AT_OPEN, OP_ANY, "scope ",
	  "mappings: scope=node (other members do not see the stores, nor "
	  "this one their changes) or local (not even a read on this member "
	  "sees the stores); from the next first open of a file on",
	  hook_mmap_incoherent },
	{ "mmap-refused", "F12", AT_OPEN, AT_OPEN, OP_ANY, "",
	  "mmap fails with ENODEV; from the next first open of a file on",
	  hook_mmap_refused },
	{ "slow", "F13", AT_REQUEST, AT_REQUEST, OP_LOCK,
	  "ms rate ms_per_member ",
	  "a call takes ms=D longer, ms_per_member=D for each active member; "
	  "rate=R a second at most", hook_slow },
	{ "unfair", "F14", AT_LOCK | AT_GRANT, AT_GRANT, OP_ANY,
	  "favourite ms ",
	  "other waiters get a lock only when favourite=N has not asked for "
	  "one for ms=D (50)", hook_unfair },
	{ "ids", "F15", AT_ATTR, AT_ATTR, OP_ANY, "ino ",
	  "st_ino differs from the others': ino=member, or with each open: "
	  "ino=open", hook_ids },
	{ "source", "F15", AT_MOUNT, AT_MOUNT, OP_ANY, "",
	  "the mount source differs: NAME-MEMBER; set before mounting",
	  hook_source },
	{ "getlk-lies", "F16", AT_GETLK, AT_GETLK, OP_ANY, "how ",
	  "F_GETLK: how=blind (never a lock), own (one's own as another's), "
	  "range, type", hook_getlk },
	{ "lease-kept", "F17", AT_LEASE, AT_LEASE, OP_ANY, "",
	  "the member's leases are not broken by another's open",
	  hook_nothing },
	{ "read-only", "F18", AT_REQUEST, AT_REQUEST, OP_CHANGES, "",
	  "changes fail with EROFS", hook_read_only },
	{ "full", "F18", AT_REQUEST, AT_REQUEST, OP_GROWS, "",
	  "what needs space fails with ENOSPC", hook_full },
	{ "quota", "F18", AT_REQUEST, AT_REQUEST, OP_GROWS, "",
	  "what needs space fails with EDQUOT", hook_quota },
	{ "gone", "F18", AT_REQUEST, AT_REQUEST, OP_ANY, "",
	  "the member's mount goes away (for good)", hook_gone },
	{ "replaced", "F18", AT_REQUEST, AT_REQUEST,
	  OP_LOCK | OP_READ | OP_WRITE, "how ",
	  "the file is replaced by a copy, or how=vanish, when it is used",
	  hook_replaced },
	{ "offset-bits", "F21", AT_LOCK, AT_LOCK, OP_ALL_LOCK, "bits how ",
	  "lock offsets are cut to bits=N (32): how=wrap, or refuse "
	  "(EOVERFLOW)", hook_offset_bits },
};

#define NUM_TYPES (sizeof(types) / sizeof(types[0]))

/*
 * Options
 */

static const struct {
	const char *name;
	unsigned int ops;
} op_names[] = {
	{ "lookup", OP_LOOKUP },
	{ "stat", OP_STAT },
	{ "statdir", OP_STATDIR },
	{ "setattr", OP_SETATTR },
	{ "open", OP_OPEN | OP_CREATE },
	{ "create", OP_CREATE },
	{ "read", OP_READ },
	{ "write", OP_WRITE },
	{ "close", OP_CLOSE },
	{ "release", OP_RELEASE },
	{ "fsync", OP_FSYNC },
	{ "mkdir", OP_MKDIR },
	{ "unlink", OP_UNLINK },
	{ "rmdir", OP_RMDIR },
	{ "rename", OP_RENAME },
	{ "link", OP_LINK },
	{ "opendir", OP_OPENDIR },
	{ "readdir", OP_READDIR },
	{ "statfs", OP_STATFS },
	{ "xattr", OP_XATTR },
	{ "trylock", OP_TRYLOCK },
	{ "waitlock", OP_WAITLOCK },
	{ "lock", OP_LOCK },
	{ "unlock", OP_UNLOCK },
	{ "getlk", OP_GETLK },
	{ "all", OP_ANY },
};

static const struct {
	const char *name;
	unsigned int families;
} family_names[] = {
	{ "process", FAMILY_PROCESS },
	{ "ofd", FAMILY_OFD },
	{ "posix", FAMILY_POSIX },
	{ "flock", FAMILY_FLOCK },
};

static bool op_by_name(const char *name, void *data)
{
	unsigned int *ops = data;
	size_t i;

	for (i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
		int cmp = strcmp(op_names[i].name, name);

		if (cmp == 0) {
			*ops |= op_names[i].ops;
			return true;
		}
	}
	return false;
}

static bool family_by_name(const char *name, void *data)
{
	unsigned int *families = data;
	size_t i;

	for (i = 0; i < sizeof(family_names) / sizeof(family_names[0]); i++) {
		int cmp = strcmp(family_names[i].name, name);

		if (cmp == 0) {
			*families |= family_names[i].families;
			return true;
		}
	}
	return false;
}

static bool member_by_name(const char *name, void *data)
{
	uint64_t *mask = data;
	char *end = NULL;
	unsigned long index = strtoul(name, &end, 10);

	if (*name == '\0' || *end != '\0' || index >= MAX_MEMBERS) {
		return false;
	}
	*mask |= UINT64_C(1) << index;
	return true;
}

/* WORD[+WORD...] */
static bool each_word(const char *value,
		      bool (*add)(const char *word, void *data), void *data)
{
	char word[32];

	while (true) {
		size_t n = strcspn(value, "+");
		bool ok;

		if (n >= sizeof(word)) {
			return false;
		}
		memcpy(word, value, n);
		word[n] = '\0';
		ok = add(word, data);
		if (!ok || value[n] == '\0') {
			return ok;
		}
		value += n + 1;
	}
}

static bool parse_bytes(const char **p, int64_t *bytes)
{
	char *end = NULL;

	errno = 0;
	*bytes = strtoll(*p, &end, 0);
	if (end == *p || errno != 0) {
		return false;
	}
	switch (*end) {
	case 'k':
		*bytes <<= 10;
		end++;
		break;
	case 'm':
		*bytes <<= 20;
		end++;
		break;
	case 'g':
		*bytes <<= 30;
		end++;
		break;
	}
	*p = end;
	return true;
}

/* LOW, LOW-HIGH or LOW- */
static bool parse_range(const char *value, int64_t *low, int64_t *high)
{
	bool ok;

	ok = parse_bytes(&value, low);
	if (!ok) {
		return false;
	}
	*high = *low;
	if (*value == '-') {
		value++;
		*high = INT64_MAX;
		if (*value != '\0') {
			ok = parse_bytes(&value, high);
		}
	}
	return ok && *value == '\0';
}

static bool parse_number(const char *value, double *number)
{
	char *end = NULL;

	*number = strtod(value, &end);
	return end != value && *end == '\0' && *number >= 0;
}

/* Is it a key that every fault has? */
static bool common_key(struct fault *fault, const char *key,
		       const char *value, bool *ok)
{
	double number = 0;
	bool is_number = parse_number(value, &number);
	int i;
	const struct {
		const char *key;
		uint64_t *where;
		double unit;
	} numbers[] = {
		{ "after", &fault->after, 1 },
		{ "count", &fault->count, 1 },
		{ "load", &fault->load, 1 },
		{ "held", &fault->held, 1 },
		{ "seed", &fault->random, 1 },
		{ "after_s", &fault->begins, 1000000 },
		{ "for_s", &fault->ends, 1000000 },
	};

	*ok = true;
	for (i = 0; i < (int)(sizeof(numbers) / sizeof(numbers[0])); i++) {
		int cmp = strcmp(numbers[i].key, key);

		if (cmp == 0) {
			*numbers[i].where = number * numbers[i].unit;
			*ok = is_number;
			return true;
		}
	}
	if (strcmp(key, "member") == 0) {
		fault->members = 0;
		*ok = each_word(value, member_by_name, &fault->members);
	} else if (strcmp(key, "op") == 0) {
		fault->ops = 0;
		*ok = each_word(value, op_by_name, &fault->ops);
	} else if (strcmp(key, "family") == 0) {
		fault->families = 0;
		*ok = each_word(value, family_by_name, &fault->families);
	} else if (strcmp(key, "offset") == 0) {
		*ok = parse_range(value, &fault->first, &fault->last);
	} else if (strcmp(key, "size") == 0) {
		*ok = parse_range(value, &fault->size_min, &fault->size_max);
	} else if (strcmp(key, "probability") == 0) {
		fault->probability = number;
		*ok = is_number;
	} else if (strcmp(key, "contended") == 0) {
		fault->contended = (number != 0);
		*ok = is_number;
	} else {
		return false;
	}
	return true;
}

static bool own_key(const struct fault_type *type, const char *key)
{
	const char *p = type->keys;
	size_t len = strlen(key);

	while (*p != '\0') {
		size_t n = strcspn(p, " ");

		if (n == len && strncmp(p, key, n) == 0) {
			return true;
		}
		p += n + 1;
	}
	return false;
}

/* Cuts fault->params up, in place. */
static bool parse_params(struct fault *fault, const char **why)
{
	char *p = fault->params;

	while (*p != '\0') {
		char *value = strchr(p, '=');
		char *next = strchr(p, ',');
		bool ok = true;
		bool known;

		if (next != NULL) {
			*next = '\0';
		}
		if (value == NULL || (next != NULL && value > next)) {
			*why = "KEY=VALUE expected";
			return false;
		}
		*value++ = '\0';
		known = common_key(fault, p, value, &ok);
		if (!ok) {
			*why = "bad value of a key";
			return false;
		}
		if (!known) {
			known = own_key(fault->type, p);
		}
		if (!known) {
			*why = "no such key for this fault";
			return false;
		}
		p = next != NULL ? next + 1 : value + strlen(value) + 1;
	}
	return true;
}

static const struct fault_type *type_by_name(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < NUM_TYPES; i++) {
		size_t n = strlen(types[i].name);

		if (n == len && strncmp(types[i].name, name, n) == 0) {
			return &types[i];
		}
	}
	return NULL;
}

static void fault_free(struct fault *fault)
{
	timer_remove(fault->timer);
	free(fault->text);
	free(fault->params);
	free(fault);
}

/* The world without this fault: what it held back or kept goes on. */
static void settle(void)
{
	struct member *member = NULL;
	struct fault *fault = NULL;
	uint64_t now = now_us();
	unsigned int at = 0;

	LIST_FOREACH(fault, &active, entry) {
		if (fault->ends > now) {
			at |= fault->type->at;
		}
	}
	if (!(at & AT_DROP)) {
		lock_drop_ghosts();
	}
	if (!(at & (AT_SEE_DATA | AT_SEE_SIZE | AT_SEE_NAME))) {
		views_free_all();
	}
	LIST_FOREACH(member, &members, entry) {
		session_release_parked(member);
	}
	lock_rescan_all();
}

static void fault_over(void *data)
{
	struct fault *fault = data;

	fault->timer = NULL;
	settle();
}

int fault_add(const char *text, unsigned int *id, const char **why)
{
	static unsigned int last_id;
	size_t len = strcspn(text, ":");
	struct fault *fault = NULL;
	uint64_t now = now_us();
	bool ok;

	fault = calloc(1, sizeof(*fault));
	if (fault == NULL) {
		abort();
	}
	fault->type = type_by_name(text, len);
	if (fault->type == NULL) {
		*why = "no such fault";
		free(fault);
		return EINVAL;
	}
	fault->members = UINT64_MAX;
	fault->ops = fault->type->ops;
	fault->families = FAMILY_POSIX | FAMILY_FLOCK;
	fault->last = INT64_MAX;
	fault->size_max = INT64_MAX;
	fault->probability = 1;
	fault->count = NEVER;
	fault->text = strdup(text);
	fault->params = calloc(1, strlen(text) + 3);
	if (fault->text == NULL || fault->params == NULL) {
		abort();
	}
	if (text[len] == ':') {
		strcpy(fault->params, text + len + 1);
	}
	ok = parse_params(fault, why);
	if (!ok) {
		fault_free(fault);
		return EINVAL;
	}

	fault->begins += now;
	fault->ends = fault->ends == 0 ? NEVER : fault->begins + fault->ends;
	fault->random = fault->random * 0x9e3779b97f4a7c15 +
			0x2545f4914f6cdd1d;
	fault->id = ++last_id;
	if (fault->ends != NEVER) {
		fault->timer = timer_add(fault->ends, fault_over, fault);
	}
	LIST_INSERT_HEAD(&active, fault, entry);
	*id = fault->id;
	return 0;
}

int fault_clear(const char *what)
{
	struct fault *fault = LIST_FIRST(&active);
	int num = 0;

	while (fault != NULL) {
		struct fault *next = LIST_NEXT(fault, entry);
		char number[16];
		bool meant = (what == NULL);

		snprintf(number, sizeof(number), "%u", fault->id);
		meant = meant || strcmp(what, number) == 0 ||
			strcmp(what, fault->type->name) == 0;
		if (meant) {
			LIST_REMOVE(fault, entry);
			fault_free(fault);
			num += 1;
		}
		fault = next;
	}
	if (num > 0) {
		settle();
	}
	return num;
}

void fault_list(FILE *f)
{
	struct fault *fault = NULL;

	LIST_FOREACH(fault, &active, entry) {
		fprintf(f, "%u %s matched=%llu hits=%llu\n", fault->id,
			fault->text, (unsigned long long)fault->matched,
			(unsigned long long)fault->hits);
	}
}

void fault_list_types(FILE *f)
{
	size_t i;

	fputs("Faults, with their class:\n", f);
	for (i = 0; i < NUM_TYPES; i++) {
		fprintf(f, "  %-18s %-4s %s\n", types[i].name,
			types[i].class, types[i].what);
	}
	fputs("Keys of every fault:\n"
	      "  member=N[+N...]   of these members only\n"
	      "  op=NAME[+NAME...] for these operations:", f);
	for (i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
		fprintf(f, " %s", op_names[i].name);
	}
	fputs("\n  family=NAME[+...] for these locks:", f);
	for (i = 0; i < sizeof(family_names) / sizeof(family_names[0]); i++) {
		fprintf(f, " %s", family_names[i].name);
	}
	fputs("\n  offset=LOW[-HIGH] where the bytes concerned meet these\n"
	      "  size=LOW[-HIGH]   for reads and writes of this size\n"
	      "  probability=P     0 to 1, from seed=N\n"
	      "  after=N           only after N matching operations\n"
	      "  count=N           at most N times\n"
	      "  after_s=T for_s=T T seconds after it was added, for T "
	      "seconds\n"
	      "  contended=1       another member has or wants a lock there\n"
	      "  load=N            N matching operations in the last second\n"
	      "  held=N            N locks are held on the file\n", f);
}

bool fault_is_active(unsigned int id)
{
	struct fault *fault = NULL;

	LIST_FOREACH(fault, &active, entry) {
		if (fault->id == id) {
			return fault->ends > now_us();
		}
	}
	return false;
}

bool faults_any(void)
{
	return !LIST_EMPTY(&active);
}

bool faults_want(enum op op)
{
	struct fault *fault = NULL;

	LIST_FOREACH(fault, &active, entry) {
		if (fault->ops != OP_ANY && (fault->ops & op)) {
			return true;
		}
	}
	return false;
}

/* xorshift64*: the same seed, the same sequence */
static double draw(struct fault *fault)
{
	fault->random ^= fault->random >> 12;
	fault->random ^= fault->random << 25;
	fault->random ^= fault->random >> 27;
	return (fault->random * 0x2545f4914f6cdd1d >> 11) / 0x1p53;
}

static bool in_time(const struct fault *fault)
{
	uint64_t now;

	if (fault->ends == NEVER && fault->begins == 0) {
		return true;
	}
	now = now_us();
	return fault->begins <= now && now < fault->ends;
}

static bool filters_match(const struct fault *fault, struct event *ev)
{
	if (ev->op != 0 && !(fault->ops & ev->op)) {
		return false;
	}
	if (ev->first > fault->last || ev->last < fault->first) {
		return false;
	}
	if (ev->size < fault->size_min || ev->size > fault->size_max) {
		return false;
	}
	if (ev->family == 0) {
		return true;
	}
	/* only where it matters: it takes a look at the caller */
	if (ev->family == FAMILY_POSIX &&
	    (fault->families & FAMILY_POSIX) != FAMILY_POSIX) {
		ev->family = lock_family(ev->family, ev->member, ev->pid);
	}
	return (ev->family & fault->families) != 0;
}

static bool state_matches(struct fault *fault, const struct event *ev)
{
	struct file *file = ev->inode != NULL ? ev->inode->file : NULL;

	if (fault->contended) {
		bool contended = false;

		if (file != NULL) {
			contended = lock_contended(file, ev->member);
		}
		if (!contended) {
			return false;
		}
	}
	if (fault->held != 0 &&
	    (file == NULL || file->num_locks < fault->held)) {
		return false;
	}
	if (fault->load != 0) {
		uint64_t second = now_us() / 1000000;

		if (second != fault->second) {
			fault->in_last_second = fault->in_second;
			if (second != fault->second + 1) {
				fault->in_last_second = 0;
			}
			fault->in_second = 0;
			fault->second = second;
		}
		fault->in_second += 1;
		if (fault->in_second < fault->load &&
		    fault->in_last_second < fault->load) {
			return false;
		}
	}
	return true;
}

static bool is_hit(struct fault *fault, enum fault_point point,
		   struct event *ev)
{
	bool ok;

	ok = in_time(fault);
	if (!ok) {
		return false;
	}
	if (ev->member != NULL &&
	    !(fault->members & (UINT64_C(1) << ev->member->index))) {
		return false;
	}
	if (!(fault->type->counted & point)) {
		return true;
	}
	ok = filters_match(fault, ev);
	if (!ok) {
		return false;
	}
	ok = state_matches(fault, ev);
	if (!ok) {
		return false;
	}
	fault->matched += 1;
	if (fault->matched <= fault->after || fault->hits >= fault->count) {
		return false;
	}
	if (fault->probability < 1) {
		double x = draw(fault);

		if (x >= fault->probability) {
			return false;
		}
	}
	fault->hits += 1;
	return true;
}

void faults_run(enum fault_point point, struct event *ev)
{
	struct fault *fault = NULL;
	struct fault *next = NULL;

	for (fault = LIST_FIRST(&active); fault != NULL; fault = next) {
		bool ok;

		next = LIST_NEXT(fault, entry);
		if (!(fault->type->at & point)) {
			continue;
		}
		ok = is_hit(fault, point, ev);
		if (ok) {
			fault->type->hook(fault, ev);
		}
	}
}
