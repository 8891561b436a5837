# pyright: reportUndefinedVariable=false, reportMissingImports=false
# Configuration of the lit suite: `lit tests/filecheck`, from anywhere in the checkout. See tests/tools/test_lit.py.
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tests", "filecheck"))
from forked_tools import ForkedShTest  # noqa: E402

config.name = "ulam"
config.test_format = ForkedShTest(execute_external=False)
config.suffixes = [".mlir", ".stan"]
# The root of the checkout is the root of the suite, so that paths on the command line are found.
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(config.test_source_root, "build", "lit")
os.makedirs(config.test_exec_root, exist_ok=True)  # the tools run in it
config.excludes = [
    "Inputs",
    "build",
    "dist",
    "examples",
    "benchmarks",
    "library",
    "reference",
    "regressions",
    "editable",
    ".venv",
]

# The tools of the Python that runs lit, whatever PATH says.
for name, module in (("stan-opt", "ulam.tools.stan_opt"), ("ulam", "ulam.tools.ulam_main"), ("filecheck", "filecheck")):
    script = os.path.join(os.path.dirname(sys.executable), name)
    command = script if os.path.exists(script) else f"{sys.executable} -m {module}"
    config.substitutions.append((rf"(?<![\w/.%-]){name}(?![\w/.-])", command))

for variable in ("PATH", "PYTHONPATH", "HOME", "ULAM_CACHE_DIR", "XDG_CACHE_HOME"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
