#!/usr/bin/python3 -B
"""transcripts.py: its comparison, and that each block and table of the pages says where it is from."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import transcripts


class Comparison(unittest.TestCase):
    def check(self, page, printed, agrees, **tolerance):
        page, printed = page.split("\n"), printed.split("\n")
        self.assertEqual(transcripts.updated(page, printed, **tolerance) == page, agrees, f"{page} and {printed}")

    def test_a_changed_digit_differs(self):
        shown = "step  50  loss 0.1749\nrow sums [1. 1.] f32\n2806 wrong, 1e-12"
        self.check(shown, shown, True)
        for at, character in enumerate(shown):
            if character.isdigit():
                self.check(shown[:at] + str((int(character) + 1) % 10) + shown[at + 1:], shown, False)

    def test_numbers_with_a_point_may_differ_within_a_tolerance(self):
        self.check("loss 2.1532", "loss 2.1550", True, within=0.001)
        self.check("loss 2.1532", "loss 2.1560", False, within=0.001)
        self.check("loss 2.1532", "loss 2.1533", False)
        self.check("loss 0.0003", "loss 0.0004", True, within=0.001)  # one in the last place
        self.check("loss 0.0003", "loss 0.0005", False, within=0.001)
        self.check("gain -1.50", "gain 1.50", False, within=1)

    def test_numbers_with_an_exponent_may_differ_by_a_factor(self):
        self.check("error 2.4e-07", "error 4.8e-07", True, noise=3)
        self.check("error 2.4e-07", "error 4.8e-06", False, noise=3)
        self.check("error 2.4e-07", "error 2.5e-07", False, within=0.01)
        self.check("error 2.4e-07", "error -2.4e-07", False, noise=3)

    def test_counts_and_words_have_no_tolerance(self):
        self.check("step 250", "step 251", False, within=0.1, noise=9)
        self.check("op 'add' (#3 of 7)", "op 'add' (#3 of 8)", False, within=0.1, noise=9)
        self.check("op 'add' 1.50", "op 'mul' 1.50", False, within=0.1)
        self.check("shape [2, 3]", "shape [2, 3, 1]", False)

    def test_dots_stand_for_text_and_for_lines(self):
        self.check("took .. s", "took 1.2 s", True)
        self.check("took .. s, 7", "took 1.2 s, 8", False)
        self.check("a\n..\nd", "a\nb\nc\nd", True)
        self.check("a\n..\nd", "a\nd", True)
        self.check("a\n..\nc", "a\nb\nc\nd", False)
        self.check("a\nc", "a\nb\nc", False)
        self.check("b\na", "a\nb", False)

    def test_spaces_may_be_more_or_fewer(self):
        self.check("step   0  loss 9.99", "step 0  loss 10.00", True, within=0.01)
        self.check("a b", "ab", False)

    def test_an_update_keeps_what_agrees_and_what_is_elided(self):
        page = ["step 1  loss 0.50  .. ms", "..", "step 9  loss 0.10", "done"]
        printed = ["step 1  loss 0.60  7 ms", "step 2  loss 0.50", "step 9  loss 0.10", "saved", "done"]
        self.assertEqual(transcripts.updated(page, printed), ["step 1  loss 0.60  .. ms", "..", "step 9  loss 0.10", "saved", "done"])


class Pages(unittest.TestCase):
    def run_on(self, page, *flags):
        """main() on one page, where a program `say` prints its arguments, one a line. Returns its code, what it printed and the page."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.md")
            path.write_text(page)
            say = pathlib.Path(folder, "say")
            say.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\ntest "$1" != bad\n')
            say.chmod(0o755)
            pathlib.Path(folder, "source.cpp").write_text('"quoted: {} in "\n    "two parts"')
            printed = io.StringIO()
            with mock.patch.multiple(transcripts, ROOT=pathlib.Path(folder), PAGES=[path]), contextlib.redirect_stdout(printed), \
                    mock.patch("sys.argv", ["transcripts", folder, *flags]):
                transcripts.output.cache_clear()
                return transcripts.main(), printed.getvalue(), path.read_text()

    def test_a_difference_is_shown_and_may_be_written(self):
        page = "# Page\n\n<!-- run -->\n```\n$ build/bin/say 1 2\n1\n3\n```\n\n<!-- run: build/bin/say '| 5 |' x -->\n| 6 |\n\nEnd\n"
        code, printed, after = self.run_on(page)
        self.assertEqual((code, after), (1, page))
        for line in ("-3", "+2", "-| 6 |", "+| 5 |", "2 run, 0 passed, 2 differ, 0 failed; 0 not run"):
            self.assertIn(f"\n{line}\n", printed)
        code, _, after = self.run_on(page, "--update")
        self.assertEqual((code, after), (0, page.replace("3", "2").replace("6", "5")))
        self.assertEqual(self.run_on(after)[0], 0)

    def test_what_is_not_run_is_listed(self):
        page = "".join(f"<!-- {comment} -->\n| 2 |\n\n"
                       for comment in ("not run, AMX: build/bin/say 1", "run, slow: build/bin/say 1", "run: no-such-program"))
        code, printed, _ = self.run_on(page, "--quick")
        self.assertEqual(code, 0)
        for why in ("AMX: build/bin/say 1", "slow", "no-such-program is not installed", "; 3 not run"):
            self.assertIn(f"{why}\n", printed)

    def test_an_exit_code_is_expected(self):
        self.assertEqual(self.run_on("<!-- run, exit 1: build/bin/say bad -->\nbad\n")[0], 0)
        code, printed, _ = self.run_on("<!-- run: build/bin/say bad -->\nbad\n", "--update")
        self.assertEqual(code, 1)
        self.assertIn("exit code 1 instead of 0", printed)

    def test_quoted_lines_are_in_their_file(self):
        page = "<!-- quotes source.cpp -->\n```\nquoted: .. in two parts\n```\n"
        self.assertEqual(self.run_on(page)[0], 0)
        code, printed, after = self.run_on(page.replace("two", "three"), "--update")
        self.assertEqual((code, after), (1, page.replace("two", "three")))
        self.assertIn("not in source.cpp: quoted: .. in three parts", printed)

    def test_a_comment_that_cannot_be_read_is_an_error(self):
        for comment in ("run", "run build/bin/say", "run, within 1: build/bin/say", "not run", "quotes"):
            with self.assertRaises(ValueError, msg=comment):
                self.run_on(f"<!-- {comment} -->\n| 2 |\n")
        with self.assertRaises(ValueError):
            self.run_on("<!-- run: build/bin/say -->\n\nText\n")

    def test_every_block_and_every_table_of_numbers_says_where_it_is_from(self):
        found = [transcript for page in transcripts.PAGES for transcript in transcripts.transcripts(page)]
        self.assertGreater(len(found), 90)
        self.assertEqual([f"{transcript} lacks a comment such as <!-- run: COMMAND -->: {transcript.lines[0]}"
                          for transcript in found if not transcript.kind], [])


if __name__ == "__main__":
    unittest.main()
