"""What a question asks for: its parts, the kind of answer, amounts, people and conditions."""
