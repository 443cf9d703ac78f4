"""Every encoding of "row N of file F is gone", and the one value they decode to."""
