"""What a session's Python worker sends besides text: results and display() as in notebooks, matplotlib's figures.

Executed in the namespace of worker.py, whose names it uses. Values describe themselves by methods such as
`_repr_png_`, which are guest code: each is called through `Worker.ask`, and what it gives is taken only if it is
of the right type and, for an image, begins like one. All data is sent as text: images as base64, JSON as JSON.

matplotlib is never imported here. A finder waits for the guest to do it, and then replaces `pyplot.show`,
`Figure.savefig` and `Animation.save`; modules that a warm start imported before are changed at once.
"""

from _io import BytesIO
from binascii import a2b_base64, b2a_base64
from os import PathLike

MIMES_KEPT = 8
MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
RICH = (("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("image/svg+xml", "_repr_svg_"),
        ("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("text/latex", "_repr_latex_"),
        ("application/json", "_repr_json_"))  # fmt: skip


def must_be_whole(mime):
    return mime.startswith("image/") or "json" in mime


def exact_image(mime, value):
    """Base64 of bytes, or of base64, that begin as such an image does; else None."""
    if issubclass(type(value), str):
        value = a2b_base64(plain(value))
    encoded = b2a_base64(value, newline=False)
    begins = a2b_base64(encoded[:16]).startswith(MAGIC.get(mime, b""))
    return encoded.decode() if encoded and begins else None


def exact(mime, value):
    """What a guest's method gave for a mime type as the text that is sent, or None if it is nonsense."""
    if type(value) is tuple and len(value) == 2:
        value = value[0]  # the other is metadata
    if value is None:
        return None
    if mime.startswith("image/") and mime != "image/svg+xml":
        return exact_image(mime, value)
    if "json" in mime:
        return "".join(json_encoder({}, False)(value, 0))
    return plain(value)


class Film:
    """Frames of an animation, at most `limit`, evenly spaced however many come."""

    def __init__(self, limit):
        self.limit, self.stride, self.seen, self.frames = limit, 1, 0, []

    def add(self, draw):
        if self.seen % self.stride == 0:
            self.frames.append(draw())
        self.seen += 1
        if len(self.frames) > self.limit:
            self.thin()

    def thin(self):
        self.frames = self.frames[::2] if len(self.frames) > 1 else []
        self.stride *= 2


class Importer:
    """A finder that changes a module right after its first import."""

    def __init__(self, patches):
        self.patches = patches
        for name in patches:
            if name in MODULES:
                self.patch(MODULES[name])

    def patch(self, module):
        try:
            self.patches[module.__name__](module)
        except Exception:
            pass  # a version that is made differently works as it is

    def find_spec(self, name, path=None, target=None):
        if name not in self.patches:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec:
                return self.watched(spec)
        return None

    def watched(self, spec):
        load_module = getattr(spec.loader, "exec_module", None)
        if load_module is None:
            return spec

        def exec_module(module):
            del spec.loader.exec_module
            load_module(module)
            self.patch(module)

        spec.loader.exec_module = exec_module
        return spec


def like(original):
    """As functools.wraps, which would have to be imported."""

    def decorate(function):
        function.__name__, function.__doc__, function.__wrapped__ = original.__name__, original.__doc__, original
        return function

    return decorate


class Display:
    def __init__(self, worker):
        self.worker, self.ask = worker, worker.ask
        self.pyplot = self.figure = self.savefig = self.animation = self.film = None
        self.new_call()

        def display(*objects, **_):
            """Shows objects as notebooks do: as pictures and tables where an object has them, else by repr."""
            for one in objects:
                self.show_object(one)

        self.function = builtins.display = display
        environ["MPLBACKEND"] = "Agg"
        patches = {"figure": self.patch_figure, "pyplot": self.patch_pyplot, "animation": self.patch_animation}
        patches = {"matplotlib." + name: patch for name, patch in patches.items()}
        patches["IPython.core.display_functions"] = self.patch_ipython
        sys.meta_path.insert(0, Importer(patches))

    def new_call(self):
        self.images = self.dropped = 0

    def may_send_image(self):
        self.images += 1
        self.dropped += self.images > self.worker.max_images
        return self.images <= self.worker.max_images

    def show_rest(self):
        """At the end of a call: figures that are still open, and what was too much."""
        try:
            if self.pyplot:
                self.worker.guest(self.show_figures)
        except BaseException as error:
            self.worker.publish({"text/plain": "[a figure was not drawn: %s]" % self.worker.explain(error)["message"]})
        if self.dropped:
            text = "[%d more images were not sent: a call may send %d]" % (self.dropped, self.worker.max_images)
            self.worker.publish({"text/plain": text})

    # ------------------------------------------------------------ values

    def show_object(self, value):
        text, (data, notes) = self.worker.text(value), self.rich(value)
        text = data.pop("text/plain", text)
        self.worker.publish(dict({"text/plain": text + notes}, **data))

    def rich(self, value):
        """All but the repr of a value, by mime type, and what had to be left out."""
        data, notes, room = {}, "", self.worker.max_frame // 2
        for mime, content in self.offers(value):
            if len(data) == MIMES_KEPT or mime in data or (mime == "image/jpeg" and "image/png" in data):
                continue
            if not must_be_whole(mime):
                data[mime] = clip(content, self.worker.max_repr)
                continue
            size = len(encode_basestring(content).encode("utf-8", "replace"))
            if size > room:
                notes += "\n[%s of %d characters left out]" % (mime, len(content))
            elif not mime.startswith("image/") or self.may_send_image():
                room -= size
                data[mime] = content
        return data, notes

    def offers(self, value):
        """Pairs of mime type and text that a value has for itself."""
        kind = type(value)
        if self.figure and issubclass(kind, self.figure):
            png = self.ask(self.drawn, value)
            if png:
                self.mark(value, hash(png))
                yield "image/png", exact_image("image/png", png)
            return
        if self.animation and issubclass(kind, self.animation.Animation):
            self.ask(self.play, value)
            return
        bundle = self.ask(getattr, kind, "_repr_mimebundle_", None)
        if bundle is not None:
            yield from self.ask(self.in_bundle, bundle, value) or ()
        for mime, name in RICH:
            method = self.ask(getattr, kind, name, None)
            content = None if method is None else self.ask(lambda: exact(mime, method(value)))
            if content:
                yield mime, content

    def in_bundle(self, method, value):
        found = method(value, include=None, exclude=None)
        found = found[0] if type(found) is tuple else found
        offers = []
        for mime, content in list(dict.items(found))[: 4 * MIMES_KEPT]:
            mime = plain(mime) or ""
            named = len(mime) < 100 and all(mime.partition("/"))
            content = self.ask(exact, mime, content) if named else None
            if content:
                offers.append((mime, content))
        return offers

    # ------------------------------------------------------------ matplotlib

    def patch_figure(self, module):
        self.figure, self.savefig = module.Figure, module.Figure.savefig

        @like(self.savefig)
        def savefig(figure, fname, *args, **named):
            value = self.savefig(figure, fname, *args, **named)
            if self.film:
                self.film.add(lambda: self.film_frame(figure))
            elif issubclass(type(fname), (str, PathLike)):
                self.show_figure(figure)
            return value

        module.Figure.savefig = savefig

    def patch_pyplot(self, module):
        self.pyplot = module

        @like(module.show)
        def show(*_, **__):
            self.show_figures()

        module.show = show

    def patch_animation(self, module):
        self.animation, original = module, module.Animation.save

        @like(original)
        def save(animation, *args, **named):
            outer, self.film = self.film, Film(self.worker.max_video_frames)
            try:
                return original(animation, *args, **named)
            finally:
                film, self.film = self.film, outer
                self.show_film(film)

        module.Animation.save = save

    def patch_ipython(self, module):
        module.display = self.function

    def drawn(self, figure, **options):
        options = options or {"dpi": self.worker.dpi, "bbox_inches": "tight"}
        buffer = BytesIO()
        self.savefig(figure, buffer, format="png", **options)
        return buffer.getvalue()

    def mark(self, figure, what):
        """Notes on the figure what this call has sent of it."""
        vars(figure)["_belljar_sent"] = self.worker.call_id, what

    def show_figures(self):
        """Sends every open figure and closes it, also when one cannot be drawn."""
        plt, failure = self.pyplot, None
        for number in plt.get_fignums():
            figure = plt.figure(number)
            try:
                self.show_figure(figure)
            except Exception as error:
                failure = failure or error
            plt.close(figure)
        if failure:
            raise failure

    def show_figure(self, figure):
        """Sends a figure, unless this call has sent it as it is, or this is a child that a guest forked."""
        sent = vars(figure).get("_belljar_sent")
        if sent == (self.worker.call_id, "film") or getpid() != self.worker.pid:
            return
        if self.images >= self.worker.max_images:
            self.may_send_image()
            return
        png = self.drawn(figure)
        if sent != (self.worker.call_id, hash(png)) and self.may_send_image():
            self.mark(figure, hash(png))
            self.worker.publish({"text/plain": self.worker.text(figure), "image/png": exact_image("image/png", png)})

    def film_frame(self, figure):
        self.mark(figure, "film")
        return exact_image("image/png", self.drawn(figure, dpi=figure.dpi))

    def show_film(self, film):
        while sum(map(len, film.frames)) > self.worker.max_frame // 2:
            film.thin()
        if film.frames and self.may_send_image():
            text = "[animation: %d of %d frames]" % (len(film.frames), film.seen)
            self.worker.publish({"text/plain": text, "video_frames": film.frames})

    def play(self, animation):
        """Sends the frames of an animation that is shown, not saved."""
        display = self

        class Nowhere(self.animation.AbstractMovieWriter):
            def setup(self, fig, outfile, dpi=None):
                self.fig = fig

            def grab_frame(self, **_):
                display.film.add(lambda: display.film_frame(self.fig))

            def finish(self):
                pass

        animation.save("nowhere", writer=Nowhere())
