"""What the documentation says of the code is what the code says."""

import re
import subprocess
import sys
from pathlib import Path

from streams.evaluators.metrics import METRICS
from streams.settings import Settings
from streams.topics import BY_ROLE

OTHER_WORDS = {
    "started_at",
    "score_id",
    "ends_turn",
    "task_completion",
    "session_id",
    "trace_id",
    "needs_human",
    "thread_id",
    "group_id",
    "timed_out",
    "flush_s",
    "eval_run_id",
    "run_failed",
}
ROOT = Path(__file__).parents[1]


def test_reference_pages_are_as_generated():
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_readme_names_only_topics_and_settings_that_exist():
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text))
    assert named <= BY_ROLE.keys(), named - BY_ROLE.keys()
    settings = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)(?: = [^`]*)?`", text))
    assert settings - OTHER_WORDS - METRICS.keys() <= Settings.model_fields.keys()


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
