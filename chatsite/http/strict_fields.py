"""Serializers that take known members alone, and fields that take values of their JSON type alone."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.fields import empty


class StrictSerializer(serializers.Serializer[Any]):
    """An object that has no members without a meaning: passed over, a misspelt wish would seem granted."""

    refuses_unknown = True  # in the API's description

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(data.keys() - self.fields.keys())):
            raise serializers.ValidationError({unknown[0]: [gettext("There is no member of this name.")]})
        return super().to_internal_value(data)


class StrictCharField(serializers.CharField):
    """Text. A number is not text."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictChoiceField(serializers.ChoiceField):
    """One of some words; a refusal names them."""

    def to_internal_value(self, data: Any) -> Any:
        is_blank = data == "" and self.allow_blank
        if not is_blank and (not isinstance(data, str) or data not in self.choice_strings_to_values):
            names = ", ".join(f"“{choice}”" for choice in self.choice_strings_to_values)
            raise serializers.ValidationError(gettext("This must be one of %(names)s.") % {"names": names})
        return super().to_internal_value(data)


class BoundedListField(serializers.ListField):
    """A list whose length is looked at first: DRF would look at each of a million items before it."""

    def to_internal_value(self, data: Any) -> list[Any]:
        most = self.max_length
        if most is not None and isinstance(data, list | tuple) and len(data) > most:
            raise serializers.ValidationError(self.error_messages["max_length"].format(max_length=most))
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """True or false. Neither a number nor a word is one of them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class WordBooleanField(serializers.BooleanField):
    """`true` or `false` in a parameter or a form, also as Python writes them. A number is neither."""

    default_empty_html = empty  # left out, it is not a box that nobody ticked

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "True", "false", "False"):
            self.fail("invalid", input=data)
        return data in ("true", "True")


class StrictIntegerField(serializers.IntegerField):
    """A whole number. Neither a word nor a truth value is one."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or data != data // 1:
            self.fail("invalid")
        return super().to_internal_value(int(data))


class StrictFloatField(serializers.FloatField):
    """A number. Neither a word nor a truth value is one."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)
