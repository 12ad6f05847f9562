/** Tensors, whose operations are in the classes that this one extends, file by file. */
import { LayerTensor } from "./tensor_layers.js";

/**
 * A tensor on a device. Operations are given to the engine in their order and return at once, with
 * a tensor that stands for the result; what fails comes with the next `read`, `describe` or `sync`,
 * under the name of the operation, and again with those of every tensor computed from it.
 */
export class Tensor extends LayerTensor {}
