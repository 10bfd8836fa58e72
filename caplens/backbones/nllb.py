"""Language codes of NLLB (Costa-jussà et al. 2022), whose texts start with a token for their language."""

from caplens.errors import InputError

NLLB_CODES = dict(
    pair.split(":")
    for pair in """
    af:afr_Latn am:amh_Ethi ar:arb_Arab az:azj_Latn be:bel_Cyrl bg:bul_Cyrl bn:ben_Beng bo:bod_Tibt bs:bos_Latn ca:cat_Latn
    cs:ces_Latn cy:cym_Latn da:dan_Latn de:deu_Latn el:ell_Grek en:eng_Latn eo:epo_Latn es:spa_Latn et:est_Latn eu:eus_Latn
    fa:pes_Arab fi:fin_Latn fil:tgl_Latn fr:fra_Latn ga:gle_Latn gl:glg_Latn gu:guj_Gujr ha:hau_Latn he:heb_Hebr hi:hin_Deva
    hr:hrv_Latn hu:hun_Latn hy:hye_Armn id:ind_Latn ig:ibo_Latn is:isl_Latn it:ita_Latn ja:jpn_Jpan jv:jav_Latn ka:kat_Geor
    kk:kaz_Cyrl km:khm_Khmr kn:kan_Knda ko:kor_Hang ky:kir_Cyrl lo:lao_Laoo lt:lit_Latn lv:lvs_Latn mg:plt_Latn mi:mri_Latn
    mk:mkd_Cyrl ml:mal_Mlym mn:khk_Cyrl mr:mar_Deva ms:zsm_Latn mt:mlt_Latn my:mya_Mymr ne:npi_Deva nl:nld_Latn no:nob_Latn
    or:ory_Orya pa:pan_Guru pl:pol_Latn ps:pbt_Arab pt:por_Latn quz:quy_Latn ro:ron_Latn ru:rus_Cyrl sd:snd_Arab si:sin_Sinh
    sk:slk_Latn sl:slv_Latn so:som_Latn sq:als_Latn sr:srp_Cyrl su:sun_Latn sv:swe_Latn sw:swh_Latn ta:tam_Taml te:tel_Telu
    tg:tgk_Cyrl th:tha_Thai tr:tur_Latn ug:uig_Arab uk:ukr_Cyrl ur:urd_Arab uz:uzn_Latn vi:vie_Latn xh:xho_Latn yi:ydd_Hebr
    yo:yor_Latn zh:zho_Hans zu:zul_Latn
    """.split()
)


def nllb_code(lang: str) -> str:
    """NLLB's code of a language, e.g. `deu_Latn` for `de`."""
    try:
        return NLLB_CODES[lang]
    except KeyError:
        raise InputError(f"no NLLB code is known for the language {lang!r}; use a model without NLLB's text tower.") from None
