# Dependencies from the packages of Debian 12 instead of a remote.
[settings]
os=Linux
arch=x86_64
compiler=gcc
compiler.version=12
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Release

[platform_requires]
dlpack/0.6
fmt/9.1.0
highway/1.0.3
libzip/1.7.3
nlohmann_json/3.11.2
onednn/2.6.3
openmpi/4.1.4
pcre2/10.42
utf8proc/2.8.0
xxhash/0.8.1
