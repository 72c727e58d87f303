"""What a session's Python worker sends besides text: notebook-like results, display(), matplotlib's figures."""

from __future__ import annotations

import base64
import json
import struct
import threading

import pytest
from worker_driver import SYSTEM_PYTHON, Worker

PNG = b"\x89PNG\r\n\x1a\n"
# Names a guest needs for pictures that are as small as can be.
TINY = """
PNG = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(20)
BASE64 = __import__("base64").b64encode(PNG).decode()
JPEG = b"\\xff\\xd8\\xff" + bytes(20)
"""


@pytest.fixture(scope="module")
def plots():
    """One worker with matplotlib, whose import takes longer than most of these tests."""
    with Worker(SYSTEM_PYTHON) as made:
        made.good("import matplotlib.pyplot as plt, matplotlib.animation as animation, io, os")
        yield made


def size_of(image: str) -> tuple[int, int]:
    data = base64.b64decode(image, validate=True)
    assert data.startswith(PNG)
    return struct.unpack(">II", data[16:24])


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    "method, value, mime, sent",
    [
        ("_repr_png_", "PNG", "image/png", base64.b64encode(PNG + bytes(20)).decode()),
        ("_repr_jpeg_", "JPEG", "image/jpeg", base64.b64encode(b"\xff\xd8\xff" + bytes(20)).decode()),
        ("_repr_svg_", "'<svg/>'", "image/svg+xml", "<svg/>"),
        ("_repr_html_", "'<b>ü</b>'", "text/html", "<b>ü</b>"),
        ("_repr_markdown_", "'# a'", "text/markdown", "# a"),
        ("_repr_latex_", "'$a$'", "text/latex", "$a$"),
        ("_repr_json_", "{'a': [1, None, 2.5]}", "application/json", '{"a":[1,null,2.5]}'),
        ("_repr_json_", "({'a': 1}, {'meta': 2})", "application/json", '{"a":1}'),
        ("_repr_html_", "('<i/>', {'meta': 2})", "text/html", "<i/>"),
        ("_repr_png_", "bytearray(PNG)", "image/png", base64.b64encode(PNG + bytes(20)).decode()),
        ("_repr_png_", "BASE64", "image/png", base64.b64encode(PNG + bytes(20)).decode()),
    ],
)  # fmt: skip
def test_a_value_shows_itself(worker, method, value, mime, sent):
    code = f"{TINY}\nclass Shown:\n    def {method}(self): return {value}\n    def __repr__(self): return 'text'\n"
    assert worker.good(code + "Shown()").result == {"repr": "text", "type": "Shown", "data": {mime: sent}}
    assert worker.good("display(Shown(), 5)").displays == [{"text/plain": "text", mime: sent}, {"text/plain": "5"}]


def test_a_bundle_of_mime_types(worker):
    answer = worker.good(TINY + """
class Shown:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": "<b/>", "image/png": PNG, "application/vnd.x+json": {"a": 1}, "text/plain": "own"}, {}
    def _repr_html_(self): return "not this one"
    def _repr_latex_(self): return "$also$"
display(Shown())
""")
    (shown,) = answer.displays
    assert shown.pop("image/png") == base64.b64encode(PNG + bytes(20)).decode()
    assert shown == {
        "text/plain": "own", "text/html": "<b/>", "application/vnd.x+json": '{"a":1}', "text/latex": "$also$",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["png", "jpeg", "svg", "html", "json", "markdown", "latex", "mimebundle"])
@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError", "raise SystemExit", "raise GeneratorExit", "return self", "return 5", "return object()",
        "return b''", "return ''", "return b'no image'", "return 'no image'", "return None", "return [self]",
        "return {'a': self}", "return float('nan')", "return (1, 2, 3)", "return {5: 5, 'a': 'b', '/': '/'}",
        "return self._repr_x_()", "x = []; x.append(x); return x", "return Text('x')", "return Dict(a=1)",
        "return memoryview(b'abc')[::2]",
    ],
)  # fmt: skip
def test_nonsense_costs_nothing_but_itself(nonsense, kind, body):
    answer = nonsense.good(f"""
class Odd:
    def __repr__(self): return "odd"
    def _repr_{kind}_(self, *a, **k): {body.replace("_repr_x_", f"_repr_{kind}_")}
display(Odd())
Odd()
""")
    assert answer.repr == "odd" and answer.displays[0]["text/plain"] == "odd"
    for shown in (answer.data, answer.displays[0]):
        assert all(type(key) is str and type(value) is str for key, value in shown.items())
        if "application/json" in shown:
            json.loads(shown["application/json"], parse_constant=lambda name: 1 / 0)
        assert not {"image/png", "image/jpeg", "/"} & set(shown)


@pytest.fixture(scope="module")
def nonsense():
    with Worker(SYSTEM_PYTHON) as made:
        made.good("""
class Text(str):
    def boom(self, *_): raise RuntimeError
    __len__ = __getitem__ = __str__ = __repr__ = __eq__ = __hash__ = encode = __iter__ = __format__ = startswith = boom
class Dict(dict):
    def boom(self, *_): raise RuntimeError
    __len__ = __getitem__ = items = keys = __iter__ = __contains__ = boom
""")
        yield made


def test_classes_and_mocks_do_not_show_themselves(worker):
    worker.good("class Shown:\n    def _repr_html_(self): return 'x'")
    assert worker.good("Shown").data == {}
    assert worker.good("from unittest.mock import MagicMock\nMagicMock()").data == {}


def test_long_texts_are_cut_and_what_cannot_be_cut_is_left_out(python):
    with Worker(python, max_repr=1000, max_frame=200_000) as worker:
        answer = worker.good("""
class Long:
    def __repr__(self): return "r" * 2000
    def _repr_html_(self): return "h" * 2000
    def _repr_json_(self): return ["j" * 300_000]
    def _repr_svg_(self): return "s" * 90_000
Long()
""")
        assert answer.data["text/html"] == "h" * 1000 + "… [1000 characters cut]"
        assert answer.data["image/svg+xml"] == "s" * 90_000
        assert "application/json" not in answer.data
        assert answer.repr == "r" * 1000 + "… [1000 characters cut]\n[application/json of 300004 characters left out]"


def test_images_over_the_limit_are_counted(python):
    with Worker(python, max_images=3) as worker:
        code = TINY + "class Shown:\n    def _repr_png_(self): return PNG\nfor _ in range(5): display(Shown())\nShown()"
        for _ in range(2):  # a call's limit, not a session's
            answer = worker.good(code)
            assert len(answer.images()) == 3 and answer.data == {}
            assert answer.displays[-1] == {"text/plain": "[3 more images were not sent: a call may send 3]"}


def test_displays_come_at_once(worker):
    worker.start("import time\ndisplay('first')\nprint('shown')\nwhile True: time.sleep(0.01)")
    assert worker.receive()["data"] == {"text/plain": "'first'"}
    worker.wait_for("shown")
    worker.interrupt()
    assert worker.finish().exception["type"] == "KeyboardInterrupt"


def test_display_ignores_what_only_notebooks_know(worker):
    assert worker.good("display(1, display_id=True, metadata={})").displays == [{"text/plain": "1"}]


def test_a_display_in_a_forked_child_is_printed(worker):
    answer = worker.good("import os\npid = os.fork()\nif not pid: display('child')\npid and os.waitpid(pid, 0)[1]")
    assert (answer.displays, answer.stdout) == ([], "'child'\n")


def test_displays_in_runaway_recursion(worker):
    if worker.ready["python"].startswith("3.8."):
        return  # it aborts when a RecursionError was caught this deep, as display() does
    answer = worker.run("def f(): display(1); f()\nf()")
    assert answer.exception["type"] == "RecursionError" and len(answer.displays) > 100
    assert worker.good("display(2)").displays == [{"text/plain": "2"}]


def test_a_display_that_fails_in_a_repr_goes_on(worker):
    answer = worker.good("class Odd:\n    def __repr__(self): display(5); raise ValueError\ndisplay(Odd())")
    assert answer.displays == [{"text/plain": "5"}, {"text/plain": "<unprintable Odd object>"}]


# ---------------------------------------------------------------- libraries


def test_ipythons_display_is_ours(worker):
    worker.good("""
import os
os.makedirs("IPython/core")
for name in ("IPython/__init__.py", "IPython/core/__init__.py"): open(name, "w").close()
with open("IPython/core/display_functions.py", "w") as f: f.write("def display(*a): print('not ours')")
with open("IPython/display.py", "w") as f: f.write("from IPython.core.display_functions import *")
""")
    answer = worker.good("from IPython.display import display\ndisplay(5)")
    assert (answer.displays, answer.stdout) == ([{"text/plain": "5"}], "")


def test_pandas_tables_are_html():
    with Worker(SYSTEM_PYTHON) as worker:
        answer = worker.good("import pandas\npandas.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
        assert answer.result["type"] == "pandas.core.frame.DataFrame"
        assert "<table" in answer.data["text/html"] and "a  b" in answer.repr
        assert worker.good("pandas.Series([1, 2])").data == {}


def test_pil_images_are_png():
    with Worker(SYSTEM_PYTHON) as worker:
        answer = worker.good("from PIL import Image\nImage.new('RGB', (7, 9))")
        assert size_of(answer.data["image/png"]) == (7, 9)
        assert worker.good("Image.new('F', (7, 9))").status == "success"


def test_numpy_arrays_are_text():
    with Worker(SYSTEM_PYTHON) as worker:
        answer = worker.good("import numpy\nnumpy.arange(3)")
        assert answer.result == {"repr": "array([0, 1, 2])", "type": "numpy.ndarray", "data": {}}


def test_matplotlib_is_not_imported_until_the_guest_does(worker):
    assert worker.good("""
import sys
[name for name in sys.modules if name.startswith(('matplotlib', 'numpy', 'PIL'))]
""").repr == "[]"
    assert worker.good("import os; os.environ['MPLBACKEND']").repr == "'Agg'"
    worker.good("os.environ['MPLBACKEND'] = 'svg'")
    assert worker.good("os.environ['MPLBACKEND']").repr == "'svg'"


# ---------------------------------------------------------------- figures


def test_show_sends_every_open_figure_and_closes_it(plots):
    answer = plots.good("""
plt.figure(figsize=(4, 2)); plt.plot([1, 2])
plt.figure(figsize=(2, 2)); plt.plot([2, 1])
plt.show()
print(plt.get_fignums())
""")
    assert answer.stdout == "[]\n" and answer.stderr == ""
    wide, square = map(size_of, answer.images())
    assert 500 < wide[0] < 620 and 250 < wide[1] < 320  # 4 by 2 inches at 150 dpi, tight
    assert wide[0] > square[0] > 250
    assert answer.displays[0]["text/plain"] == "<Figure size 400x200 with 1 Axes>"


def test_the_dpi_is_the_engines():
    with Worker(SYSTEM_PYTHON, dpi=50) as worker:
        answer = worker.good("""
import matplotlib.pyplot as plt
plt.figure(figsize=(4, 2)); plt.plot([1, 2])
plt.show()
""")
        assert 150 < size_of(answer.images()[0])[0] < 210


def test_open_figures_are_sent_once_at_the_end(plots):
    answer = plots.good("fig, ax = plt.subplots(); ax.plot([1, 2])")
    assert len(answer.images()) == 1
    answer = plots.good("plt.get_fignums()")
    assert answer.repr == "[]" and answer.images() == []


def test_open_figures_are_sent_also_after_an_error(plots):
    answer = plots.run("plt.plot([1, 2])\n1/0")
    assert answer.exception["type"] == "ZeroDivisionError" and len(answer.images()) == 1


def test_savefig_writes_the_file_and_sends_the_picture_once(plots):
    answer = plots.good("""
plt.plot([1, 2])
plt.savefig('a.png', dpi=30)
plt.savefig('a.pdf')
plt.show()
open('a.pdf', 'rb').read(4), os.path.getsize('a.png') > 100
""")
    assert answer.repr == "(b'%PDF', True)"
    assert len(answer.images()) == 1
    assert size_of(answer.images()[0])[0] > 700  # ours, not the guest's 30 dpi


def test_a_forked_child_saves_figures_quietly(plots):
    answer = plots.good("""
pid = os.fork()
if not pid:
    plt.plot([1]); plt.savefig('child.png'); plt.show()
pid and os.waitpid(pid, 0)[1], os.path.exists('child.png')
""")
    assert (answer.repr, answer.stdout, answer.displays) == ("(0, True)", "", [])


def test_a_figure_that_changed_is_sent_again(plots):
    answer = plots.good("""
import pathlib
fig, ax = plt.subplots(); ax.plot([1, 2])
fig.savefig(pathlib.Path('a.png'))
ax.set_title('new')
fig.savefig('b.png')
""")
    assert len(answer.images()) == 2


def test_savefig_into_memory_sends_nothing_by_itself(plots):
    answer = plots.good("""
fig, ax = plt.subplots(); buffer = io.BytesIO(); fig.savefig(buffer); plt.close(fig)
buffer.getvalue()[:4]
""")
    assert answer.repr == repr(b"\x89PNG") and answer.images() == []


def test_a_figure_as_a_result_is_a_picture_and_is_not_sent_twice(plots):
    answer = plots.good("fig, ax = plt.subplots(); ax.plot([1, 2]); fig")
    assert size_of(answer.data["image/png"]) and answer.images() == []
    assert answer.result["type"] == "matplotlib.figure.Figure"
    answer = plots.good("display(fig)")
    assert len(answer.images()) == 1


def test_a_figure_of_its_own_can_be_drawn(plots):
    answer = plots.good("from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1, 2]); f")
    assert size_of(answer.data["image/png"])


def test_more_figures_than_allowed_are_counted():
    with Worker(SYSTEM_PYTHON, max_images=2) as worker:
        answer = worker.good("""
import matplotlib.pyplot as plt
for n in range(5):
    plt.figure(figsize=(1, 1)); plt.plot([n])
    plt.savefig('a.png'); plt.close()
""")
        assert len(answer.images()) == 2
        assert answer.displays[-1] == {"text/plain": "[3 more images were not sent: a call may send 2]"}


def test_a_figure_that_cannot_be_drawn_raises_in_show_with_no_frame_of_ours(plots):
    answer = plots.run("plt.title(r'$\\frac{$')\nplt.show()")
    assert answer.exception["type"] == "ValueError"
    frames = [line for line in answer.traceback.splitlines() if line.startswith("  File")]
    assert any("<cell" in one for one in frames)
    assert all("<cell" in one or "/dist-packages/" in one for one in frames)
    assert plots.good("plt.get_fignums()").repr == "[]"


def test_a_figure_that_cannot_be_drawn_at_the_end_is_told(plots):
    answer = plots.good("plt.title(r'$\\frac{$')")
    assert answer.displays[-1]["text/plain"].startswith("[a figure was not drawn: ")
    assert plots.good("plt.get_fignums()").repr == "[]"


def test_the_backend_is_kept_if_the_guest_changes_it():
    with Worker(SYSTEM_PYTHON) as worker:
        answer = worker.good("""
import matplotlib; matplotlib.use('svg')
import matplotlib.pyplot as plt
plt.plot([1]); plt.show()
matplotlib.get_backend()
""")
        assert answer.repr == "'svg'" and len(answer.images()) == 1


@pytest.mark.parametrize("code", ["from pylab import *; plot([1]); show()", """
from matplotlib.pyplot import show, plot
plot([1]); show()
"""])
def test_show_is_ours_however_it_is_imported(code):
    with Worker(SYSTEM_PYTHON) as worker:
        answer = worker.good(code + "\nimport matplotlib.pyplot\nmatplotlib.pyplot.get_fignums()")
        assert answer.repr == "[]" and len(answer.images()) == 1


def test_matplotlib_that_was_imported_before_the_fork_is_patched():
    with Worker(SYSTEM_PYTHON, warm=["matplotlib.pyplot", "matplotlib.animation"]) as worker:
        assert worker.out.take() == b"matplotlib.pyplot matplotlib.animation\n"
        answer = worker.good("""
import matplotlib, matplotlib.pyplot as plt
plt.plot([1]); plt.show()
matplotlib.get_backend()
""")
        assert answer.repr.lower() == "'agg'" and len(answer.images()) == 1
        worker.good("plt.plot([2]); plt.savefig('a.png')")


def test_an_interrupt_while_figures_are_drawn_is_answered(plots):
    plots.start("print('in')\nwhile True:\n    plt.figure(); plt.plot([1, 2]); plt.show()")
    plots.wait_for("in")
    answered = threading.Event()

    def insist():  # Python drops an exception in a finalizer, and figures have many
        while not answered.wait(0.1):
            plots.interrupt()

    thread = threading.Thread(target=insist)
    thread.start()
    try:
        answer = plots.finish()
    finally:
        answered.set()
        thread.join()
    assert answer.exception["type"] == "KeyboardInterrupt"
    assert plots.good("1 + 1").repr == "2"


# ---------------------------------------------------------------- animations

MOVING = """
fig, ax = plt.subplots(figsize=(1, 1))
line, = ax.plot([0, 1], [0, 1])
def draw(n):
    line.set_ydata([0, n]); return line,
moving = animation.FuncAnimation(fig, draw, frames=FRAMES, interval=10)
"""


def film(answer) -> list[str]:
    (found,) = [one["video_frames"] for one in answer.displays if "video_frames" in one]
    return found


def test_a_saved_animation_sends_its_frames_and_is_written(plots):
    answer = plots.good(MOVING.replace("FRAMES", "6") + """
moving.save('a.gif', writer='pillow')
open('a.gif', 'rb').read(4)
""")
    assert answer.repr == "b'GIF8'"
    frames = film(answer)
    assert len(frames) == 6 and len(set(frames)) == 6
    assert {size_of(one) for one in frames} == {(100, 100)}
    assert answer.images() == []  # nor its figure at the end


def test_frames_are_capped_and_evenly_spaced():
    with Worker(SYSTEM_PYTHON, max_video_frames=8) as worker:
        worker.good("import matplotlib.pyplot as plt, matplotlib.animation as animation")
        every = film(worker.good(MOVING.replace("FRAMES", "8") + "moving.save('a.gif')"))
        capped = worker.good(MOVING.replace("FRAMES", "iter(range(30))") + "moving.save('a.gif')")
        assert len(every) == 8
        assert film(capped)[:2] == [every[0], every[4]] and len(film(capped)) == 8
        assert {"[animation: 8 of 30 frames]"} == {one["text/plain"] for one in capped.displays}


@pytest.mark.parametrize("code", ["moving.to_jshtml()[:0]", "display(moving)", "moving"])
def test_a_shown_animation_sends_its_frames(plots, code):
    answer = plots.good(MOVING.replace("FRAMES", "5") + code)
    assert len(film(answer)) == 5
    assert plots.good("plt.get_fignums()").repr == "[]"


def test_an_animation_that_cannot_be_written_still_sends_its_frames(plots):
    answer = plots.run(MOVING.replace("FRAMES", "4") + "moving.save('a.nonsense', writer='pillow')")
    assert answer.status == "error"
    assert len(film(answer)) == 4
