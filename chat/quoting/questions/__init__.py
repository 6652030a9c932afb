"""What a question asks for: its parts, the type of answer, amounts, people and conditions."""
