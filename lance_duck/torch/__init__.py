"""Datasets of PyTorch over Lance tables, with pylance's names where they fit: `lance_duck.torch.data`.

You hold: a dataset, or a selection of its rows (`loading`). You get: what a DataLoader takes, and tensors.
Never here: which rows are read, and in which order: `loading` decides that.
"""
