// npz.mjs — NumPy's .npz files, with arrays as { type, dims, data }: types are ONNX Runtime's words, data a typed array.
import { readFileSync, writeFileSync } from "node:fs";
import { inflateRawSync } from "node:zlib";

// By NumPy's words for them. Elements of 16-bit floats stay the bits that they are.
const TYPES = {
  "<f4": ["float32", Float32Array], "<f8": ["float64", Float64Array], "<f2": ["float16", Uint16Array],
  "<i8": ["int64", BigInt64Array], "<i4": ["int32", Int32Array], "<i2": ["int16", Int16Array], "|i1": ["int8", Int8Array],
  "<u8": ["uint64", BigUint64Array], "<u4": ["uint32", Uint32Array], "<u2": ["uint16", Uint16Array], "|u1": ["uint8", Uint8Array],
  "|b1": ["bool", Uint8Array],
};

export function arrayOf(type, count) {
  const row = Object.values(TYPES).find(([name]) => name === type);
  if (row === undefined) throw new Error(`elements of type ${type}`);
  return new row[1](count);
}

function decodeArray(bytes) {
  const wide = bytes[6] > 1; // version 2 has a longer header
  const begin = wide ? 12 : 10, end = begin + (wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const header = bytes.toString("latin1", begin, end);
  const descr = /'descr': '([^']*)'/.exec(header)[1];
  const dims = /'shape': \(([^)]*)\)/.exec(header)[1].split(",").filter((size) => size.trim() !== "").map(Number);
  if (TYPES[descr] === undefined || header.includes("'fortran_order': True")) throw new Error(`an array of ${descr}`);
  const [type, Elements] = TYPES[descr];
  return { type, dims, data: new Elements(new Uint8Array(bytes.subarray(end)).buffer) };
}

function encodeArray({ type, dims, data }) {
  const descr = Object.keys(TYPES).find((key) => TYPES[key][0] === type);
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dims.map((size) => `${size},`).join(" ")}), }`;
  const header = text.padEnd(Math.ceil((11 + text.length) / 64) * 64 - 11) + "\n";
  const prefix = Buffer.from("\x93NUMPY\x01\0..", "latin1");
  prefix.writeUInt16LE(header.length, 8);
  return Buffer.concat([prefix, Buffer.from(header, "latin1"), Buffer.from(data.buffer, data.byteOffset, data.byteLength)]);
}

// What the file holds, by name.
export function readArrays(path) {
  const bytes = readFileSync(path), arrays = {};
  const directory = bytes.lastIndexOf("PK\x05\x06", undefined, "latin1");
  for (let at = bytes.readUInt32LE(directory + 16), left = bytes.readUInt16LE(directory + 10); left > 0; left--) {
    const size = bytes.readUInt32LE(at + 20), nameSize = bytes.readUInt16LE(at + 28), local = bytes.readUInt32LE(at + 42);
    const begin = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const content = bytes.subarray(begin, begin + size);
    const name = bytes.toString("utf8", at + 46, at + 46 + nameSize).replace(/\.npy$/, "");
    arrays[name] = decodeArray(bytes.readUInt16LE(at + 10) === 0 ? content : inflateRawSync(content));
    at += 46 + nameSize + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return arrays;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

function checksum(bytes) {
  let crc = ~0;
  for (const byte of bytes) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

// Nothing is compressed.
export function writeArrays(path, arrays) {
  const files = [], directory = [];
  let at = 0;
  for (const [name, array] of Object.entries(arrays)) {
    const content = encodeArray(array), file = Buffer.from(`${name}.npy`);
    const fields = Buffer.alloc(26); // which both headers share
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(0x800, 2); // names are UTF-8
    fields.writeUInt16LE(0x21, 8); // the first of January 1980
    fields.writeUInt32LE(checksum(content), 10);
    fields.writeUInt32LE(content.length, 14);
    fields.writeUInt32LE(content.length, 18);
    fields.writeUInt16LE(file.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(at, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\0", "latin1"), fields, place, file);
    files.push(Buffer.from("PK\x03\x04"), fields, file, content);
    at += 30 + file.length + content.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0), end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(Object.keys(arrays).length, 8);
  end.writeUInt16LE(Object.keys(arrays).length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(at, 16);
  writeFileSync(path, Buffer.concat([...files, ...directory, end]));
}
