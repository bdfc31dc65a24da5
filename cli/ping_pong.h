/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The door for those who know ping_pong
 *
 *   ping_pong [-rwmc] FILE NUM_LOCKS
 *   ping_pong -l FILE
 *
 * Options and output lines are those of the tool that comes with CTDB,
 * character for character, so that scripts, habits and rings of mixed
 * instances keep working: the rate once a second as "%8u locks/sec\r",
 * "data increment = %u" when it changes, and the lines of -l. It runs until
 * it is killed.
 *
 * What that tool does wrong is done right, and said on standard error in one
 * line (program, call, path, reason):
 *
 * - An error ends the run, exit status 1. EDEADLK is explained.
 * - A lock of somebody else on a byte that is held (-c) is such an error.
 * - -l says "Working" only when the lock was refused because of a holder that
 *   F_GETLK shows. It never writes.
 * - A ring that stands still for five seconds says so.
 * - Bad usage: exit status 64.
 *
 * Whose file it is
 *
 * FILE is made when it does not exist. One that exists is used only if it
 * looks like a file of ping_pong's, otherwise it is refused and stays as it
 * is. Such a file holds NUM_LOCKS counters and one byte more, which is never
 * written and so remains NUL. The counters can have any value, that of four
 * letters included, and the next run may ask for another NUM_LOCKS. Used are:
 *
 * - an empty file;
 * - one that does not begin with text, if its last byte is NUL or it has
 *   NUM_LOCKS + 1 bytes (with -l: in any case);
 * - one that begins with text, if its last byte, and no other, is NUL: no
 *   text has one. Or if it has NUM_LOCKS + 1 bytes and somebody holds a byte
 *   or two of the ring at this moment: the older tool, when it shortens a
 *   file of more locks, leaves a counter where the NUL should be.
 *
 * A file of another size is given its new one.
 *
 * Never used: a file larger than 64 KiB (hence NUM_LOCKS is at most 65535),
 * a symbolic link, and what is no regular file. "Text" is four printable
 * bytes, tabs and line ends among them; fewer where the file is shorter.
 */
#ifndef PINGPONG_CLI_PING_PONG_H
#define PINGPONG_CLI_PING_PONG_H

/* Returns the exit status. */
int ping_pong_main(int argc, const char **argv);

#endif
