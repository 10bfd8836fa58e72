"""What models that are asked in words are asked, by language."""

from caplens.data.languages import base_language, language_names

_PROMPTS = {
    "en": "Describe this image in one short sentence. Answer with the sentence alone.",
    "de": "Beschreibe dieses Bild in einem kurzen Satz. Antworte nur mit dem Satz.",
    "fr": "Décris cette image en une courte phrase. Réponds uniquement par la phrase.",
    "es": "Describe esta imagen en una frase corta. Responde solo con la frase.",
    "it": "Descrivi questa immagine in una breve frase. Rispondi solo con la frase.",
    "pt": "Descreva esta imagem em uma frase curta. Responda apenas com a frase.",
    "cs": "Popiš tento obrázek jednou krátkou větou. Odpověz pouze větou.",
    "tr": "Bu görseli kısa bir cümleyle tanımla. Yalnızca cümleyle yanıt ver.",
    "zh": "用一句简短的话描述这张图片。只回答这句话。",
    "ja": "この画像を短い一文で説明してください。文だけを答えてください。",
    "ar": "صف هذه الصورة بجملة قصيرة واحدة. أجب بالجملة فقط.",
    "hi": "इस चित्र का वर्णन एक छोटे वाक्य में करें। केवल वाक्य में उत्तर दें।",
}
_ANY = "Describe this image in one short sentence in {language}. Answer with the sentence alone."
NUMBERED = ' Give {count} different answers, the best first, as JSON alone: {{"captions": ["…"]}}'
"""After the question, where several captions are asked for at once."""


def prompt_for(lang: str, own: str | None = None) -> str:
    """The user's own question, in which `{language}` becomes the English name of the language, or that of a language."""
    base = base_language(lang)
    if own is None and base in _PROMPTS:
        return _PROMPTS[base]
    return (_ANY if own is None else own).replace("{language}", language_names().get(base, base))
