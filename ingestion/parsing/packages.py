"""Office files as the ZIP packages of XML parts that they are."""

import zipfile
from xml.etree import ElementTree

# What reading a damaged one raises: a broken archive, a missing part, broken XML, an unknown compression.
DAMAGE = (
    zipfile.BadZipFile,
    KeyError,
    ElementTree.ParseError,
    EOFError,
    ValueError,
    NotImplementedError,
)
