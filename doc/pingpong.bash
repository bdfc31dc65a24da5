# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# Completion for pingpong: commands and options as its --help has them, names
# of checks as "pingpong checks" lists them.

_pingpong_options()
{
	"${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null |
		grep -oE -- '--[a-z-]+' | sort -u
}

_pingpong_checks()
{
	"${COMP_WORDS[0]}" checks 2>/dev/null |
		grep -oE '^ *[a-z]+\.[a-z0-9]+'
}

_pingpong()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words=

	if [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	[ "$cur" != = ] || cur=
	if [ "$COMP_CWORD" = 1 ]; then
		words=$("${COMP_WORDS[0]}" --help 2>/dev/null |
			sed -n 's/^  \([a-z]*\) .*/\1/p')
	elif [ "$prev" = explain ] || [ "$prev" = --only ]; then
		words=$(_pingpong_checks)
	elif [ "$prev" = --for ]; then
		words="cluster-lock posix-locking share file-id tdb mmap"
	elif [[ $cur == -* ]]; then
		words=$(_pingpong_options)
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -o default -F _pingpong pingpong
