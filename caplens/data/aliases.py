"""What people call the columns of captions, images, languages and ids."""

import re
import unicodedata

ALIASES = {
    "caption": """
        alt|alt text|alternative text|alttext|alternate text|text|description|image description|image caption|captions|sentence
        |alternativtext|beschreibung|bildbeschreibung|bildunterschrift|bildtext|texte alternatif|texte de remplacement|légende
        |description de l image|texto alternativo|descripción|pie de foto|testo alternativo|descrizione|didascalia|descrição
        |legenda|bijschrift|alternatieve tekst|beschrijving|alternativní text|popis|popisek|tekst alternatywny|opis|alt metin
        |alternatif metin|açıklama|описание|подпись|альтернативный текст|النص البديل|نص بديل|الوصف
        |وصف|وصف الصورة|替代文本|替代文字
        |描述|图片描述|说明|標題|キャプション|説明|説明文|代替テキスト|캡션|설명|대체 텍스트|विवरण|वैकल्पिक पाठ
    """,
    "image": """
        file|file name|filename|file path|filepath|path|image file|image name|image path|image filename|img|photo|picture|bild
        |bilddatei|bildname|datei|dateiname|foto|fichier|nom du fichier|nom de fichier|photographie
        |imagen|archivo|nombre de archivo
        |immagine|nome file|nome del file|imagem|arquivo|ficheiro|nome do arquivo|afbeelding|bestand|bestandsnaam|obrázek|soubor
        |název souboru|obraz|plik|nazwa pliku|resim|görsel|dosya|dosya adı|изображение|картинка
        |файл|имя файла|صورة|الصورة|ملف|الملف
        |اسم الملف|图片|图像|文件|文件名|画像|ファイル|ファイル名|이미지|파일|파일명|छवि|चित्र|फ़ाइल
    """,
    "lang": "language|locale|lang code|language code|sprache|langue|idioma|língua|lingua|taal"
    "|jazyk|język|dil|язык|اللغة|لغة|语言|言語|언어|भाषा",
    "id": "key|uid|uuid|guid|identifier|nr|no|number|nummer|kennung|bild id|caption id|inventarnummer"
    "|inventory number|identifiant|identificador|编号|معرف|رقم|номер",
    "references": "reference|referenz|referenzen",
}
FIELD_OF = {alias.strip(): field for field, aliases in ALIASES.items() for alias in aliases.replace("\n", "").split("|")}
_SEPARATORS = re.compile(r"[\s_\-./:()\[\]]+")
"""Folded name of a column -> the field that it means."""


def folded(name: str) -> str:
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFC", name).casefold()).strip()


def field_meant_by(name: str) -> str | None:
    """The field that a column of this name stands for where the file has no column of the field's own name."""
    return FIELD_OF.get(folded(name))
