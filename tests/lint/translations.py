#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nothing that a user reads is left untranslated.

po/POTFILES.in lists exactly the sources that hold translatable texts; po/sluice.pot
is what xgettext makes of them with the arguments in po/meson.build (`meson compile
-C build sluice-pot` writes it anew); each language of po/LINGUAS has every text,
none of them fuzzy, with the same {} placeholders as the original.
"""

import ast
import re
import subprocess
import sys

from lintlib import Problem, expect, need, plain_env, read, run, source_files, tree_files

CALL = re.compile(r'(?<![\w>.])(?:_|N_|C_|NC_|Q_|P_|n?gettext)\s*\(\s*(?:[\w\s]+,\s*)?"')


def listed(root, path):
    lines = read(root, path).splitlines()
    return [word for line in lines if not line.lstrip().startswith("#") for word in line.split()]


def holds_texts(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return bool(CALL.search(text))


def xgettext_args(root):
    listing = re.search(r"args:\s*(\[.*?\])", read(root, "po/meson.build"), re.S)
    return ast.literal_eval(listing[1]) if listing else []


def without_dates(text):
    return [line for line in text.splitlines() if not line.startswith('"POT-Creation-Date:')]


def entries(text):
    """(context, id, plural) -> list of translations, for a po or pot file."""
    found = {}
    for block in re.split(r"\n\s*\n", text):
        fields, current = {}, None
        for line in block.splitlines():
            match = re.match(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s+(".*")$', line)
            if match:
                current = match[1]
                fields[current] = ast.literal_eval(match[2])
            elif line.startswith('"') and current:
                fields[current] += ast.literal_eval(line)
        if "msgid" in fields:
            key = (fields.get("msgctxt"), fields["msgid"], fields.get("msgid_plural"))
            found[key] = [text for name, text in fields.items() if name.startswith("msgstr")]
    return found


def placeholders(text):
    return sorted(re.findall(r"\{[^{}]*\}", text.replace("{{", "").replace("}}", "")))


def run_tool(*command):
    return subprocess.run(command, capture_output=True, text=True, env=plain_env())


def check_language(root, language, template):
    path = f"po/{language}.po"
    if not (root / path).is_file():
        return [Problem(path, 0, "is in po/LINGUAS but missing")]
    problems = []
    done = run_tool("msgfmt", "-c", "--statistics", "-o", "/dev/null", str(root / path))
    if done.returncode or "fuzzy" in done.stderr or "untranslated" in done.stderr:
        problems.append(Problem(path, 0, "msgfmt: " + " / ".join(done.stderr.split("\n")).strip(" /")))
    texts = entries(read(root, path))
    for key in template:
        if key not in texts:
            problems.append(Problem(path, 0, f"has no entry for {key[1]!r}"))
    for key, translations in texts.items():
        if key[1] and key not in template:
            problems.append(Problem(path, 0, f"has an entry that no source uses: {key[1]!r}"))
        allowed = [placeholders(text) for text in key[1:] if text is not None]
        for text in translations:
            if key[1] and text and placeholders(text) not in allowed:
                problems.append(Problem(path, 0, f"placeholders differ in {text!r}"))
    return problems


def check(root, options):
    need("xgettext")
    need("msgfmt")
    problems = []
    wanted = {path.as_posix() for path in source_files(root, "src") if holds_texts(read(root, path))}
    have = listed(root, "po/POTFILES.in")
    for path in sorted(wanted - set(have)):
        problems.append(Problem("po/POTFILES.in", 0, f"{path} holds texts and is not listed"))
    for path in sorted(set(have) - wanted):
        problems.append(Problem("po/POTFILES.in", 0, f"{path} holds no texts or is missing"))
    if problems:
        return problems

    if have:
        made = run_tool("xgettext", "--package-name=sluice", "-p", str(root / "po"), "-f", str(root / "po/POTFILES.in"),
                        "-D", str(root), "-k_", "-o", "-", *xgettext_args(root))
        if made.returncode:
            return [Problem("po/POTFILES.in", 0, "xgettext: " + made.stderr.strip())]
        if without_dates(made.stdout) != without_dates(read(root, "po/sluice.pot")):
            problems.append(Problem("po/sluice.pot", 0, "is not up to date; run the target sluice-pot"))

    template = entries(read(root, "po/sluice.pot"))
    languages = listed(root, "po/LINGUAS")
    for path in tree_files(root):
        if path.suffix == ".po" and path.stem not in languages:
            problems.append(Problem(path, 0, "is not in po/LINGUAS"))
    for language in languages:
        problems += check_language(root, language, template)
    return problems


HEADER = ('msgid ""\nmsgstr ""\n"Project-Id-Version: sluice\\n"\n"PO-Revision-Date: 2026-01-01 00:00+0000\\n"\n'
          '"Last-Translator: none\\n"\n"Language-Team: none\\n"\n"Language: de\\n"\n"MIME-Version: 1.0\\n"\n'
          '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n')


def self_test():
    need("xgettext")
    good = {
        "src/a.cpp": '// _("not this")\n#define _(text) gettext(text)\nint a() { say(_("no {} here"), 1); }\n',
        "src/b.cpp": 'int b() { foo_("x"); }\n',
        "po/POTFILES.in": "# sources\nsrc/a.cpp\n",
        "po/LINGUAS": "de\n",
        "po/meson.build": "i18n.gettext('sluice', args: ['--from-code=UTF-8', '--add-location=file', '--omit-header'])\n",
        "po/sluice.pot": '#: src/a.cpp\nmsgid "no {} here"\nmsgstr ""\n',
        "po/de.po": HEADER + '\nmsgid "no {} here"\nmsgstr "kein {} hier"\n',
    }
    expect(check, good)

    def bad(path, text, *wanted):
        expect(check, {**good, path: text}, *wanted)

    bad("src/b.cpp", 'int b() { say(_("hello")); }\n', "src/b.cpp holds texts and is not listed")
    bad("src/b.cpp", 'int b() { say(ngettext("hello", "hellos", 2)); }\n', "src/b.cpp holds texts")
    bad("po/POTFILES.in", "src/a.cpp\nsrc/b.cpp\n", "src/b.cpp holds no texts")
    bad("src/a.cpp", 'int a() { say(_("no {} there"), 1); }\n', "is not up to date")
    bad("po/de.po", HEADER, "has no entry for 'no {} here'")
    bad("po/de.po", HEADER + '\nmsgid "no {} here"\nmsgstr ""\n', "untranslated")
    bad("po/de.po", HEADER + '\n#, fuzzy\nmsgid "no {} here"\nmsgstr "kein {} hier"\n', "fuzzy")
    bad("po/de.po", HEADER + '\nmsgid "no {} here"\nmsgstr "keins hier"\n', "placeholders differ")
    bad("po/de.po", good["po/de.po"] + '\nmsgid "old"\nmsgstr "alt"\n', "that no source uses: 'old'")
    bad("po/fr.po", good["po/de.po"], "is not in po/LINGUAS")
    bad("po/LINGUAS", "de fr\n", "po/fr.po: is in po/LINGUAS but missing")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
