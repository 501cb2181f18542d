#!/bin/sh
# Makes DejaVuSans-subset.ttf, the font of PNG charts, of DejaVuSans.ttf (version 2.35) with pyftsubset of fonttools:
#   sh subset.sh DejaVuSans.ttf
# It has Latin with Latin-1 and Extended-A, Greek, Cyrillic, punctuation and arrows. Its name table keeps the licence, which is
# also in LICENSE, so that every binary carries it.
set -eu
exec pyftsubset "$1" --output-file="$(dirname "$0")/DejaVuSans-subset.ttf" \
    --unicodes=U+0020-007E,U+00A0-017F,U+0370-03FF,U+0400-04FF,U+2010-2027,U+2030-203A,U+20AC,U+2190-2193,U+2212,U+221E,U+FFFD \
    --layout-features= --drop-tables+=GDEF,GPOS,GSUB,MATH,gasp \
    --no-hinting --notdef-outline --name-IDs=0,1,2,4,5,6,13
