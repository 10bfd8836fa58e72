# caplens with caplens-mini: offline, as an ordinary user.
#   docker build -t caplens .
#   docker run --rm --network none -v "$PWD:/data" caplens check alt-texts.xlsx --images photos -o fix.html
FROM python:3.11-slim

COPY . /source
ARG EXTRAS=parquet,excel,cjk,langid
RUN pip install --no-cache-dir --disable-pip-version-check -c /source/constraints.txt "/source[$EXTRAS]" \
    && rm -r /source \
    && useradd --create-home --uid 1000 caplens

USER 1000
ENV CAPLENS_CACHE=/home/caplens/.cache/caplens HF_HUB_OFFLINE=1
WORKDIR /data
ENTRYPOINT ["caplens"]
CMD ["--help"]
