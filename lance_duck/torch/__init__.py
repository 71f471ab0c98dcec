"""PyTorch datasets over Lance tables. The classes in `lance_duck.torch.data` have pylance's names.

You hold: a dataset, or a selection of its rows (`loading`). You get: datasets and samplers for a DataLoader, and
tensors. Never here: the choice and order of rows (`loading`).
"""

from lance_duck import lazy

lazy.package(__name__, {})
