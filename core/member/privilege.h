/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a worker may still do once its place is open
 *
 * It needs root's rights on files there, as smbd and ctdbd have them, and
 * nothing else: no other capability, none to be gained by exec, no core file,
 * no more descriptors than its slots and some.
 */
#ifndef PINGPONG_MEMBER_PRIVILEGE_H
#define PINGPONG_MEMBER_PRIVILEGE_H

/*
 * Drop the rest, for good. What the kernel does not let go is kept: a worker
 * without it tells the same, and nobody has to be asked.
 */
void privilege_drop(void);

#endif
