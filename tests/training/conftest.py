import pytest
import tiny_data


@pytest.fixture(scope="session")
def training_data(tmp_path_factory):
    return tiny_data.make(tmp_path_factory.mktemp("data"))
