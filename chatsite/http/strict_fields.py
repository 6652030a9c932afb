"""Serializers that accept only known members, and fields that accept only their JSON type."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.fields import empty


class StrictSerializer(serializers.Serializer[Any]):
    """Rejects unknown members: if they were ignored, a misspelt option would seem to work."""

    refuses_unknown = True  # read by the API description

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(data.keys() - self.fields.keys())):
            raise serializers.ValidationError({unknown[0]: [gettext("There is no member with this name.")]})
        return super().to_internal_value(data)


class StrictCharField(serializers.CharField):
    """A string; numbers are rejected."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictChoiceField(serializers.ChoiceField):
    """One of several strings; the error lists them."""

    def to_internal_value(self, data: Any) -> Any:
        is_blank = data == "" and self.allow_blank
        if not is_blank and (not isinstance(data, str) or data not in self.choice_strings_to_values):
            names = ", ".join(f"“{choice}”" for choice in self.choice_strings_to_values)
            raise serializers.ValidationError(gettext("This must be one of %(names)s.") % {"names": names})
        return super().to_internal_value(data)


class BoundedListField(serializers.ListField):
    """A list whose length is checked before its items."""

    def to_internal_value(self, data: Any) -> list[Any]:
        most = self.max_length
        if most is not None and isinstance(data, list | tuple) and len(data) > most:
            raise serializers.ValidationError(self.error_messages["max_length"].format(max_length=most))
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean; rejects numbers and strings."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class WordBooleanField(serializers.BooleanField):
    """`true` or `false`, or Python's `True` or `False`, in a query or a form; rejects numbers."""

    default_empty_html = empty  # an omitted field counts as missing, not as false

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "True", "false", "False"):
            self.fail("invalid", input=data)
        return data in ("true", "True")


class StrictIntegerField(serializers.IntegerField):
    """An integer, also in the form 2.0; strings and booleans are rejected."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or data != data // 1:
            self.fail("invalid")
        return super().to_internal_value(int(data))


class StrictFloatField(serializers.FloatField):
    """A number; strings and booleans are rejected."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)
