FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels kvplan-sizer && rm -r /wheels \
    && useradd --create-home --uid 1000 kvplan
USER kvplan
WORKDIR /work
ENTRYPOINT ["kvplan"]
