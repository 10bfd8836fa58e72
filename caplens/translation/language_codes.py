"""The codes by which translation models call languages, from ours (BCP-47), in one table."""

from collections.abc import Mapping

from caplens.backbones.nllb import NLLB_CODES

MBART_50 = dict(
    pair.split(":")
    for pair in """
    ar:ar_AR cs:cs_CZ de:de_DE en:en_XX es:es_XX et:et_EE fi:fi_FI fr:fr_XX gu:gu_IN hi:hi_IN it:it_IT ja:ja_XX kk:kk_KZ
    ko:ko_KR lt:lt_LT lv:lv_LV my:my_MM ne:ne_NP nl:nl_XX ro:ro_RO ru:ru_RU si:si_LK tr:tr_TR vi:vi_VN zh:zh_CN af:af_ZA
    az:az_AZ bn:bn_IN fa:fa_IR he:he_IL hr:hr_HR id:id_ID ka:ka_GE km:km_KH mk:mk_MK ml:ml_IN mn:mn_MN mr:mr_IN pl:pl_PL
    ps:ps_AF pt:pt_XX sv:sv_SE sw:sw_KE ta:ta_IN te:te_IN th:th_TH fil:tl_XX uk:uk_UA ur:ur_PK xh:xh_ZA gl:gl_ES sl:sl_SI
    """.split()
)
OTHER_NAMES = {"fil": ("tl", "fil"), "he": ("he", "iw"), "no": ("no", "nb"), "id": ("id", "in"), "jv": ("jv", "jw")}
"""Languages that models call by one code or another; all others are called as here."""
OPUS_THREE_LETTERS = dict(
    pair.split(":")
    for pair in """
    de:deu fr:fra es:spa it:ita pt:por nl:nld cs:ces pl:pol ru:rus uk:ukr zh:cmn_Hans ja:jpn ko:kor ar:ara hi:hin tr:tur
    sv:swe da:dan no:nob fi:fin hu:hun el:ell he:heb ro:ron hr:hrv id:ind vi:vie th:tha bn:ben te:tel fa:pes sw:swa fil:tgl
    mi:mri ca:cat en:eng
    """.split()
)
"""In the tokens `>>deu<<` of Opus-MT models with several target languages."""
TABLES: Mapping[str, Mapping[str, str]] = {"nllb": NLLB_CODES, "mbart": MBART_50}
"""Family -> our code -> its code."""


def names_of(lang: str) -> tuple[str, ...]:
    """The codes by which models without a table of their own may call a language."""
    return OTHER_NAMES.get(lang, (lang,))
