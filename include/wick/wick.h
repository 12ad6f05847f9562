/* wick/wick.h: all of Wick's public interface. */
#ifndef WICK_WICK_H
#define WICK_WICK_H

#include <wick/array.h>
#include <wick/api.h>
#include <wick/balancer.h>
#include <wick/base.h>
#include <wick/chat.h>
#include <wick/convert.h>
#include <wick/device.h>
#include <wick/embed.h>
#include <wick/file.h>
#include <wick/finetune.h>
#include <wick/grad.h>
#include <wick/in_place.h>
#include <wick/json.h>
#include <wick/judge.h>
#include <wick/kernel.h>
#include <wick/lora.h>
#include <wick/model.h>
#include <wick/nn.h>
#include <wick/operation.h>
#include <wick/ops.h>
#include <wick/saving.h>
#include <wick/session.h>
#include <wick/source.h>
#include <wick/tensor.h>
#include <wick/text.h>
#include <wick/tools.h>
#include <wick/train.h>
#include <wick/verify.h>

#endif
