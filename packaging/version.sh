#!/bin/sh
# Prints the version of this checkout: 1.2.3 at the tag v1.2.3, 1.2.3+4.gabc1234 four commits after it, and 0.1.0 without
# a tag or without git. Uncommitted changes add "dirty". Package managers sort each after its tag.
fallback=0.1.0
described=$(git describe --tags --match 'v[0-9]*' --dirty --abbrev=7 2>/dev/null) || described=
case $described in
v*) ;;
*)
	echo "$fallback"
	exit
	;;
esac
echo "$described" | sed -e 's/^v//' -e 's/-\([0-9][0-9]*\)-g\([0-9a-f]*\)/+\1.g\2/' -e 's/\(+.*\)-dirty$/\1.dirty/' \
	-e 's/-dirty$/+dirty/'
