"""What all tests share: this file's folder on the path, so that ``reference`` can be imported."""
