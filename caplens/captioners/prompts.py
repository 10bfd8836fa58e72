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
NUMBERED = (
    "Describe this image in {language}, in {count} different short sentences, the best first. Answer with JSON alone:"
    ' {{"captions": ["…"]}}'
)


def prompt_for(lang: str, own: str | None = None, template: str = _ANY, **values: object) -> str:
    """The user's own prompt, or that of a language; `{language}` in a template becomes its English name."""
    base = base_language(lang)
    if own is None and template is _ANY and base in _PROMPTS:
        return _PROMPTS[base]
    text = own if own is not None else template.format(language="{language}", **values)
    return text.replace("{language}", language_names().get(base, base))
