/**
 * Encodes ONNX models: the part of the format that the generated models need. Pure. The numbers of the fields are those of
 * https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 */

/** The element types that the generated models use, with their numbers in `TensorProto.DataType`. */
const ELEMENT = { float: 1, int32: 6, int64: 7, bool: 9 } as const;

export interface OnnxValue {
  readonly name: string;
  readonly type: keyof typeof ELEMENT;
  /** A name stands for a length that is known only when the graph runs. */
  readonly shape: readonly (number | string)[];
}

export interface OnnxConstant {
  readonly name: string;
  readonly type: Exclude<keyof typeof ELEMENT, 'bool'>;
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, number | readonly number[]>>;
}

export interface OnnxModel {
  readonly name: string;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly constants: readonly OnnxConstant[];
  readonly nodes: readonly OnnxNode[];
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Version 8 of the format and version 17 of the operators: old enough for every runtime in use. */
const IR_VERSION = 8;
const OPERATOR_VERSION = 17;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_INTS = 7;

/** Returns a node that turns the numbers of a value into another type. */
export function toType(type: keyof typeof ELEMENT, input: string, output: string): OnnxNode {
  return { op: 'Cast', inputs: [input], outputs: [output], attributes: { to: ELEMENT[type] } };
}

export function encodeOnnx(model: OnnxModel): Uint8Array {
  const graph = [
    ...model.nodes.map((node) => message(1, encodeNode(node))),
    string(2, model.name),
    ...model.constants.map((constant) => message(5, encodeConstant(constant))),
    ...model.inputs.map((value) => message(11, encodeValue(value))),
    ...model.outputs.map((value) => message(12, encodeValue(value))),
  ];
  const metadata = Object.entries(model.metadata ?? {}).map(([key, value]) => message(14, [string(1, key), string(2, value)]));
  const operators = message(8, [string(1, ''), integer(2, OPERATOR_VERSION)]);
  return Buffer.concat([integer(1, IR_VERSION), string(2, 'svc'), message(7, graph), operators, ...metadata]);
}

function encodeNode(node: OnnxNode): readonly Buffer[] {
  return [
    ...node.inputs.map((name) => string(1, name)),
    ...node.outputs.map((name) => string(2, name)),
    string(4, node.op),
    ...Object.entries(node.attributes ?? {}).map(([name, value]) => message(5, encodeAttribute(name, value))),
  ];
}

function encodeAttribute(name: string, value: number | readonly number[]): readonly Buffer[] {
  if (typeof value === 'number') return [string(1, name), integer(3, value), integer(20, ATTRIBUTE_INT)];
  return [string(1, name), ...value.map((item) => integer(8, item)), integer(20, ATTRIBUTE_INTS)];
}

function encodeConstant({ name, type, shape, values }: OnnxConstant): readonly Buffer[] {
  return [...shape.map((length) => integer(1, length)), integer(2, ELEMENT[type]), string(8, name), bytes(9, encodeElements(type, values))];
}

function encodeElements(type: OnnxConstant['type'], values: readonly number[]): Buffer {
  const size = type === 'int64' ? 8 : 4;
  const data = Buffer.alloc(values.length * size);
  values.forEach((value, index) => {
    if (type === 'float') data.writeFloatLE(value, index * size);
    else if (type === 'int32') data.writeInt32LE(value, index * size);
    else data.writeBigInt64LE(BigInt(value), index * size);
  });
  return data;
}

function encodeValue({ name, type, shape }: OnnxValue): readonly Buffer[] {
  const dimensions = shape.map((length) => message(1, [typeof length === 'number' ? integer(1, length) : string(2, length)]));
  return [string(1, name), message(2, [message(1, [integer(1, ELEMENT[type]), message(2, dimensions)])])];
}

const string = (field: number, value: string): Buffer => bytes(field, Buffer.from(value));
const message = (field: number, parts: readonly Buffer[]): Buffer => bytes(field, Buffer.concat(parts));
const bytes = (field: number, value: Buffer): Buffer => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);
const integer = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)]);

/** Protocol Buffers write seven bits in each byte, and negative numbers as 64 bits in two's complement. */
function varint(value: number): Buffer {
  const encoded: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    encoded.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...encoded, Number(rest)]);
}
