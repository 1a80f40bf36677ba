/** Reads the model `m.gguf` of a directory after a small one, as a service that has read others before, and prints how many milliseconds that took and by how many bytes the memory of the process grew at most. Arguments: DIRECTORY. */
import { createModelReader } from '../src/models/read-model.ts';
import { gguf } from '../src/providers/gguf/gguf.ts';
import { ModelId } from '../src/schema/words/names.ts';

const KIB = 1024;
const [directory = ''] = process.argv.slice(2);
const id = ModelId.parse('m.gguf');
const peak = (): number => process.resourceUsage().maxRSS * KIB;
await createModelReader(directory, [gguf.models]).read(ModelId.parse('small.gguf'), 'small.gguf');
const before = peak();
const began = performance.now();
const read = await createModelReader(directory, [gguf.models]).read(id, id);
const ms = performance.now() - began;
if (read.kind !== 'present') throw new Error(`The file cannot be read: ${JSON.stringify(read)}`);
process.stdout.write(`${ms} ${peak() - before}\n`);
