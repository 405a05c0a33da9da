"""Each test has a cache folder of its own."""

from tests.pure.cache.conftest import cache_folder as cache_folder
