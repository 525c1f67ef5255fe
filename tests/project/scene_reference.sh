#!/usr/bin/env bash
# docs/scene-file.md is what docs/generate-scene-reference makes of the schema today, and everything in the schema is documented.
set -euo pipefail
cd "${1:-${US_SOURCE_DIR:-.}}"

if ! diff -u docs/scene-file.md <(bash docs/generate-scene-reference schema/scene.xsd); then
    echo "docs/scene-file.md is out of date: run docs/generate-scene-reference schema/scene.xsd > docs/scene-file.md"
    exit 1
fi

# Each attribute, element and simple type has a documentation of its own.
undocumented=$(awk '
BEGIN { RS = "<" }
/^xs:(attribute|element|simpleType)[ \t\n]/ { if (open != "") print open; open = $0; sub(/>.*/, "", open) }
/^xs:documentation/ { open = "" }
END { if (open != "") print open }
' schema/scene.xsd)
if [[ -n $undocumented ]]; then
    echo "without xs:documentation in schema/scene.xsd:"
    echo "$undocumented"
    exit 1
fi
