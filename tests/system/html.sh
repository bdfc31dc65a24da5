#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The page: complete, self-contained, and where chromium is there looked at as
# a phone and as a desk would show it.
# limit: 300

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

page=$SCRATCH/page.html
mounts local 64 directory
places=()
for ((i = 0; i < 64; i++)); do
	places+=("$MNT/node$i")
done

expect_page()
{
	expect_says "it ends" '^</body></html>$' "$page"
	expect_not "nothing from elsewhere" \
		grep -E 'https?:|<script|<link|<img|@import|url\(' "$page"
	expect "every tag in its place" sane
}

sane()
{
	python3 - "$page" <<-'END'
	import sys
	from html.parser import HTMLParser
	class P(HTMLParser):
	    stack = []
	    def handle_starttag(self, tag, attrs):
	        if tag not in ('meta', 'br', 'th', 'dt'):
	            self.stack.append(tag)
	    def handle_startendtag(self, tag, attrs):
	        pass
	    def handle_endtag(self, tag):
	        if tag in ('th', 'dt'):
	            return
	        if self.stack.pop() != tag:
	            sys.exit('%s at %s' % (tag, self.getpos()))
	p = P()
	p.feed(open(sys.argv[1]).read())
	sys.exit(p.stack or 0)
	END
}

need python3

about "64 members"
expect_exit 4 "exit status" "$PINGPONG" check --local --no-store --quick \
	--timeout 60 --only lock.supported,lock.exclusion,lock.handoff,lock.ring \
	--for tdb --html "$page" "${places[@]}"
expect_page
expect "a row each" [ "$(grep -c 'node[0-9]*</td>' "$page")" -ge 64 ]
expect_says "the matrix" 'Members against members' "$page"
expect_says "hand-over by pair" 'Hand-over of a lock' "$page"

# The control is a page that is too wide.
fits()
{
	local width=$1 file=$2

	cat >"$SCRATCH/frame.html" <<-END
		<!DOCTYPE html><meta charset=utf-8><body>
		<iframe id=f width=$width height=800 src="$file"></iframe><script>
		onload = () => { const d = document.getElementById("f")
			.contentDocument.documentElement;
			document.title = d.scrollWidth <= d.clientWidth
				? "fits" : "wide"; }</script>
	END
	timeout 60 chromium --headless --no-sandbox --disable-gpu \
		--allow-file-access-from-files --user-data-dir="$SCRATCH/c" \
		--dump-dom "file://$SCRATCH/frame.html" 2>/dev/null |
		grep -q '<title>fits</title>'
}

if [ -n "$(command -v chromium)" ]; then
	printf '<!DOCTYPE html><div style="width:3000px">x</div>' \
		>"$SCRATCH/wide.html"
	expect_not "the control is too wide" fits 1000 "$SCRATCH/wide.html"
	expect "it fits a desk" fits 1000 "$page"
	expect "it fits a phone" fits 360 "$page"
	rm -rf "$SCRATCH/c"
else
	skip "it fits" "no program 'chromium'"
fi

about "a name that would be markup"
evil=$SCRATCH/'<img src=x onerror=1>&"'
mkdir "$evil"
expect_exit 4 "exit status" "$PINGPONG" check --no-store --quick \
	--only lock.supported --html "$page" "$evil"
expect_page
expect_says "it is shown as it is" '&#60;img src=x' "$page"

about "a file that cannot be made"
expect_exit 73 "exit status" "$PINGPONG" check --no-store --quick \
	--only lock.supported --html "$SCRATCH/nothing/page" "$evil"
