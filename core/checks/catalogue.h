/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The checks that there are; catalogue.c has their order
 */
#ifndef PINGPONG_CHECKS_CATALOGUE_H
#define PINGPONG_CHECKS_CATALOGUE_H

#include "core/checks/check.h"

extern const struct check check_lock_supported;
extern const struct check check_lock_exclusion;
extern const struct check check_lock_shared;
extern const struct check check_lock_getlk;
extern const struct check check_lock_handoff;
extern const struct check check_lock_release;
extern const struct check check_lock_range64;
extern const struct check check_lock_many;
extern const struct check check_lock_ofd;
extern const struct check check_lock_flock;
extern const struct check check_lock_idle;
extern const struct check check_lock_cancel;
extern const struct check check_lock_ring;
extern const struct check check_io_increment;
extern const struct check check_mmap_increment;
extern const struct check check_io_visibility;
extern const struct check check_io_size;
extern const struct check check_io_append;
extern const struct check check_mmap_local;
extern const struct check check_mmap_visibility;
extern const struct check check_mmap_mixed;
extern const struct check check_id_inode;
extern const struct check check_id_device;
extern const struct check check_dir_visibility;
extern const struct check check_lease_break;
extern const struct check check_rate_alone;
extern const struct check check_rate_together;
extern const struct check check_rate_recovery;

#endif
