"""The message catalogue: every sentence that a user sees passes through ``_`` or ``ngettext``.

Translations live beside this file as ``<language>/LC_MESSAGES/probepatch.mo``; the language is taken from
``LANGUAGE``, ``LC_ALL``, ``LC_MESSAGES`` or ``LANG``, as gettext does. Without a translation the English text is used.
"""

from __future__ import annotations

import gettext
from pathlib import Path

_catalogue = gettext.translation("probepatch", localedir=Path(__file__).parent, fallback=True)

_ = _catalogue.gettext
ngettext = _catalogue.ngettext
