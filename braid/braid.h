#pragma once

// All of braid.

#include <braid/core/dtype.h>
#include <braid/core/error.h>
#include <braid/core/shape.h>
#include <braid/core/storage.h>
