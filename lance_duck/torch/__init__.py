"""PyTorch datasets over Lance tables, with pylance's names for the same classes: `lance_duck.torch.data`.

You hold: a dataset, or a selection of its rows (`loading`). You get: datasets and samplers for a DataLoader, and
tensors. Never here: the choice and order of rows, which are in `loading`.
"""
