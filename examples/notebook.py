#!/usr/bin/env python3
"""As in a notebook: load a CSV, plot it, meet a blocked read, read the hint, allow it.

    pip install ./bindings/python && python3 examples/notebook.py

Each part is a cell; results show themselves there (`_repr_html_`, `_repr_png_`).
"""

# %% Some data: one file in the folder that the session may read, one elsewhere.
import pathlib
import tempfile

from belljar import Session

here = pathlib.Path(tempfile.mkdtemp(prefix="notebook-"))
(here / "data").mkdir()
(here / "data/prices.csv").write_text("day,price\n1,3.0\n2,4.5\n3,4.0\n")
(here / "private").mkdir()
(here / "private/costs.csv").write_text("day,cost\n1,1.0\n2,1.5\n3,2.5\n")

# %% Code that a model wrote, in a sandbox that may read `data` and nothing else of ours.
session = Session(profile="restricted", extra_fs_read=[here / "data"])
first = session.python(f"""
import pandas as pd
prices = pd.read_csv("{here}/data/prices.csv")
prices.plot(x="day", y="price")
round(float(prices.price.mean()), 2)
""")
print("mean:", first.result)
first.images[0].save(here / "prices.png")
print("plot:", len(first.images[0].data) > 1000)

# %% The next idea needs a file that nobody allowed.
costs = here / "private/costs.csv"
second = session.python(f'costs = pd.read_csv("{costs}")')
assert second.exception is not None
print("blocked:", second.exception.type)

# %% Why, and what would allow it?
print("why:", session.why(costs))

# %% Say so, and go on. A policy is fixed for the life of a session: take a new one.
session.close()
with Session(profile="restricted", extra_fs_read=[here / "data", costs]) as session:
    third = session.python(f"""
import pandas as pd
prices = pd.read_csv("{here}/data/prices.csv")
costs = pd.read_csv("{costs}")
float((prices.price - costs.cost).sum())
""")
    print("profit:", third.result)
