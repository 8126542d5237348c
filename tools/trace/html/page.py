#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Generate the page of urxe trace --html as C: insert the style and the scripts,
with their hashes for the Content-Security-Policy, and write the parts before and
after the data as two arrays.
Usage: page.py OUTPUT HTML CSS JS..."""

import base64
import hashlib
import pathlib
import sys

output, html, css, *js = map(pathlib.Path, sys.argv[1:])


def allowed(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def c_string(text):
    """The elements of an array: compilers limit the length of string literals."""
    rows = [text[i:i + 16] for i in range(0, len(text), 16)]
    return "\n".join("\t" + " ".join(f"{byte}," for byte in row)
                     for row in rows) + "\n\t0"


style = css.read_text(encoding="utf-8")
script = "".join(f.read_text(encoding="utf-8") for f in js)
if "</script" in script or "</style" in style:
    sys.exit("page.py: a script or the style contains its end tag")
page = html.read_text(encoding="utf-8")
for place, text in (("STYLE_HASH", allowed(style)),
                    ("SCRIPT_HASH", allowed(script)),
                    ("STYLE", style), ("SCRIPT", script)):
    if page.count(f"@{place}@") != 1:
        sys.exit(f"page.py: {html} must have exactly one @{place}@")
    page = page.replace(f"@{place}@", text)
before, after = page.split("@DATA@")
output.write_text(f"""/* made by {pathlib.Path(__file__).name} */
#include "trace/trace_html.h"

const char html_before_data[] = {{
{c_string(before.encode())}
}};

const char html_after_data[] = {{
{c_string(after.encode())}
}};
""", encoding="utf-8")
