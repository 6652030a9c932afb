"""Serializer fields that take values of their JSON type alone, as the API description says."""

from typing import Any

from rest_framework import serializers


class StrictCharField(serializers.CharField):
    """Text. A number is not text."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """True or false. Neither a number nor a word is one of them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
