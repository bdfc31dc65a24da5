/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * clusterfs: a cluster file system for tests, on one machine.
 *
 * Every mount ("member") is one node of the cluster; all of them show one
 * backing directory. One process with one thread serves them all from one
 * event loop, so nothing in here needs a mutex; what has to wait (a lock, a
 * request held back by a fault) is put aside and answered later, and never
 * stands in another request's way.
 *
 *   loop.c     descriptors and timers
 *   member.c   mounting, the life and death of a member
 *   session.c  requests as the kernel sends them: faults first, then libfuse
 *   ops.c      the file system's operations
 *   inode.c    what is known of files, per member and in the cluster
 *   lockmgr.c  locks
 *   views.c    what a member with a stale cache still sees
 *   lease.c    leases, broken by another member's open
 *   faults.c   the table of faults
 *   control.c  the socket: members that join, faults that come and go
 *
 * Times are microseconds of the monotonic clock. An int result is 0 or an
 * errno value unless said otherwise.
 */

#ifndef CLUSTERFS_H
#define CLUSTERFS_H

#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>
#include <fuse_lowlevel.h>

#define MAX_MEMBERS 64

/* Where a member's shared mappings lead. */
enum mmap_mode {
	MMAP_COHERENT,		/* to the backing file's own pages */
	MMAP_CACHED,		/* to the mount's own page cache */
	MMAP_PRIVATE,		/* to a copy: no store is seen elsewhere */
	MMAP_REFUSED,		/* nowhere: ENODEV */
};

struct dirent_list;
struct view;

/* A file of the cluster, the same for all members. */
struct file {
	LIST_ENTRY(file) entry;
	LIST_ENTRY(file) in_hash;
	dev_t dev;
	ino_t ino;
	mode_t mode;		/* its type only */
	int fd;			/* O_PATH */
	int io_fd;		/* for reading and writing, -1 if not open */
	unsigned int refs;
	unsigned int num_open;	/* handles of all members */
	TAILQ_HEAD(, lock) locks;
	TAILQ_HEAD(, waiter) waiters;
	unsigned int num_locks;
	LIST_HEAD(, inode) inodes;
};

/* A file as one member knows it; its address is the FUSE node id. */
struct inode {
	LIST_ENTRY(inode) in_file;
	LIST_ENTRY(inode) in_member;
	struct member *member;
	struct file *file;
	uint64_t num_lookups;
	unsigned int num_open;
	unsigned int times_opened;
	ino_t told_ino;			/* what the kernel was last told */
	enum mmap_mode mmap_mode;	/* settled by the first open */
	int backing_id;		/* 0 when nothing is passed through */
	int private_fd;			/* MMAP_PRIVATE */
	struct view *view;		/* NULL: nothing is stale */
};

/* An open file or directory; its address is the FUSE file handle. */
struct handle {
	LIST_ENTRY(handle) entry;
	struct inode *inode;
	pid_t pid;		/* that opened it */
	struct dirent_list *dirents;
	int last_close;		/* enum drop_cause of the last FLUSH */
};

/* A descriptor in the event loop. */
struct source {
	LIST_ENTRY(source) entry;
	int fd;
	void (*ready)(struct source *source);
	void *data;
};

struct timer {
	LIST_ENTRY(timer) entry;
	uint64_t when;
	void (*fire)(void *data);
	void *data;
};

struct member {
	LIST_ENTRY(member) entry;
	int index;
	char *path;		/* mount point, in the mounter's namespace */
	pid_t joiner;		/* process that mounted it; 0: this one */
	dev_t dev;		/* of the mount */
	char proc[48];		/* where its processes have their numbers */
	struct source *device;	/* /dev/fuse */
	struct source *joined;	/* socket of the joiner, NULL if none */
	struct fuse_session *session;
	struct fuse_buf buf;
	uint64_t init_unique;	/* of the INIT request */
	bool can_pass_through;
	bool dead;
	struct inode *root;
	LIST_HEAD(, inode) inodes;
	LIST_HEAD(, handle) handles;
	LIST_HEAD(, parked) parked;
};

LIST_HEAD(member_list, member);
LIST_HEAD(file_list, file);

extern struct member_list members;
extern int backing_fd;		/* O_PATH, of the backing directory */
extern const char *backing_path;

/* loop.c */

uint64_t now_us(void);
struct source *source_add(int fd, void (*ready)(struct source *source),
			  void *data);
/* Takes the source out of the loop and closes its descriptor. */
void source_remove(struct source *source);
struct timer *timer_add(uint64_t when, void (*fire)(void *data), void *data);
void timer_remove(struct timer *timer);
/* Runs until loop_stop() is called. */
int loop_run(void);
void loop_stop(void);
/* Nothing is to be waited for any more. */
void loop_free(void);

/* member.c */

/*
 * Mount at path, in the caller's mount namespace, and hand out the
 * /dev/fuse descriptor and the device number of the mount.
 */
int mount_fuse(const char *path, const char *source, int *fd, dev_t *dev);
/*
 * Serve fuse_fd as a member; index -1 takes the lowest free one. joiner_fd
 * is the socket to the process that mounted it, or -1. Both descriptors
 * belong to the member from here on, also on failure.
 */
int member_add(const char *path, dev_t dev, int index, int fuse_fd,
	       int joiner_fd, pid_t joiner, struct member **member);
/* The node dies: its locks go, its mount point too if it is ours. */
void member_remove(struct member *member);
void members_remove_all(void);
struct member *member_find(int index);

/* session.c */

/* The request that is being handled right now. */
struct request {
	struct member *member;
	uint64_t unique;
	pid_t pid;
	int error;	/* to be answered to a close, done all the same */
};
extern struct request current;

int session_start(struct member *member, int fuse_fd);
void session_stop(struct member *member);
void session_ready(struct source *source);
/* Answer what faults hold back and no active fault holds any more. */
void session_release_parked(struct member *member);
/* System call (number, first two arguments) that pid is in, or -1. */
int caller_syscall(const struct member *member, pid_t pid,
		   unsigned long args[2]);

/* ops.c */

extern const struct fuse_lowlevel_ops clusterfs_ops;
void dirents_free(struct dirent_list *list);

/* inode.c */

#define PROC_PATH_SIZE 40

struct inode *inode_from_id(struct member *member, fuse_ino_t id);
/* Look up name below dir; counts as one lookup of the kernel. */
int inode_lookup(struct inode *dir, const char *name, struct inode **inode);
/* The same for a file that is known already; NULL: no memory. */
struct inode *inode_get(struct member *member, struct file *file);
int inode_root(struct member *member, struct inode **inode);
void inode_forget(struct inode *inode, uint64_t num_lookups);
void inode_free(struct inode *inode);
fuse_ino_t inode_id(struct inode *inode);
/* A reference to the file of that name, or NULL and errno. */
struct file *file_lookup(struct file *dir, const char *name);
struct file *file_ref(struct file *file);
void file_unref(struct file *file);
extern struct file_list all_files;
/* A path that opens the file once more; buf holds PROC_PATH_SIZE. */
const char *file_proc_path(const struct file *file, char *buf);
/* Put a copy in the file's place, or (vanish) nothing. */
void file_replace(struct file *file, bool vanish);
/* Open file->io_fd, if it is not open. */
int file_open_io(struct file *file);

int handle_open(struct inode *inode, struct handle **handle);
void handle_close(struct handle *handle);
struct handle *handle_from_fh(uint64_t fh);
/* To be called after each truncation and each write. */
void file_size_changed(struct file *file);
void file_written(struct file *file, const char *data, size_t size,
		  off_t offset);

/* views.c */

/*
 * What a member with stale caches still sees: bytes, size and names as they
 * were before another member changed them. Nothing is kept unless a fault
 * asks for it.
 */

/*
 * Before inode's member changes these bytes, or the size: whoever is stale
 * keeps what he has seen so far.
 */
void views_before_write(struct inode *inode, off_t offset, size_t size,
			off_t new_size);
/* The same for a name in dir. */
void views_before_name(struct inode *dir, const char *name);
/* What a member reads: buf has num_read fresh bytes. Returns how many. */
ssize_t view_read(struct inode *inode, char *buf, size_t size, off_t offset,
		  ssize_t num_read);
void view_attr(struct inode *inode, struct stat *st);
/* True if a stale name answers; *file is then the old file or NULL. */
bool view_name(struct inode *dir, const char *name, struct file **file);
/* Each stale name of a directory; file is NULL if there was none. */
void view_names(struct inode *dir,
		void (*each)(const char *name, struct file *file, void *data),
		void *data);
void view_opened(struct inode *inode);
void view_free(struct inode *inode);
void views_free_all(void);

/* lease.c */

/*
 * The kernel keeps the leases of a mount to itself. So that an open by one
 * member breaks another's lease, as in a cluster, the file is opened through
 * the holder's mount first, by a thread. True: req waits for that, or has
 * been answered with EWOULDBLOCK; go_on() is called when the lease is gone.
 */
bool lease_break(struct inode *inode, int flags, fuse_req_t req,
		 void (*go_on)(fuse_req_t req, struct inode *inode));
/* The opener gives up. False: there is no such open. */
bool lease_interrupt(struct member *member, uint64_t unique);
void lease_drop_member(struct member *member);

/* control.c */

/* Listen for members that join and for commands. */
int control_listen(const char *path);
/* Send the words as a command, print the answer; returns an exit status. */
int control_send(const char *path, char **words);
/*
 * Mount in this process's namespace, have the server at path serve it, and
 * stay until either goes: this process is the node. mounted() is called
 * when the server has agreed. Returns an exit status.
 */
int control_join(const char *path, const char *mountpoint, int index,
		 const char *source, void (*mounted)(void));

#endif /* CLUSTERFS_H */
