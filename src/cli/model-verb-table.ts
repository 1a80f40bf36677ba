/** The verbs of the group "model" as data. Those with `--store` work on a directory of this machine; the others ask the service. */
import { FOREIGN_TOOLS } from '../models/decide/foreign-tools.ts';
import { MODEL_KINDS } from '../schema/slot/provider-kinds.ts';
import { OUTPUTS } from './output/output.ts';
import type { Verb, VerbOption } from './verb.ts';

const STORE: VerbOption = { flags: '--store <directory>', help: 'Directory of the store (default: $SVC_MODELS_DIR)', path: true };

export const MODEL_VERBS: readonly Verb[] = [
  {
    name: 'list',
    help: 'List the models of the catalogue and of the store that this version can run',
    options: [
      { flags: '--kind <kind>', help: 'Only models of this kind', choices: MODEL_KINDS },
      { flags: '--present', help: 'Only models that are in the store' },
      { flags: '--all', help: 'Also those that this version cannot run yet, with the reason' },
      { flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: [...OUTPUTS, 'name'] },
    ],
    examples: ['svcctl model list --kind coder', 'svcctl model list --present'],
    load: async () => (await import('./verbs/model-catalogue.ts')).runModelList,
  },
  {
    name: 'show',
    help: 'Show the files of a model, its licence, what it needs, and where these facts can be checked',
    arguments: [{ name: '<name>', help: 'Id in the catalogue, or another name of a model', suggestions: 'models' }],
    options: [{ flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: ['table', 'json', 'yaml'] }],
    examples: ['svcctl model show qwen3-4b-instruct'],
    load: async () => (await import('./verbs/model-catalogue.ts')).runModelShow,
  },
  {
    name: 'pull',
    help: 'Download a model into the store of the service',
    arguments: [
      {
        name: '<name>',
        help: 'Id in the catalogue, "hf:owner/repo[:quantisation]", "hf:owner/repo/file.gguf", or an https address',
        suggestions: 'models',
      },
    ],
    options: [
      { flags: '--accept-license', help: 'Accept the licence of the model, if it restricts the use of the model' },
      { flags: '--sha256 <hash>', help: 'SHA-256 of the file at an address' },
      { flags: '--as <path>', help: 'Path in the store for the file at an address (default: url/HOST/FILE)' },
      { flags: '--no-wait', help: 'Return as soon as the download has begun' },
    ],
    examples: ['svcctl model pull hf:unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M', 'svcctl model pull demo-fox'],
    load: async () => (await import('./verbs/model.ts')).runModelPull,
  },
  {
    name: 'rm',
    help: 'Remove models from the store of the service, unless a slot uses them',
    arguments: [{ name: '<names...>', help: 'Names of the models', suggestions: 'models' }],
    load: async () => (await import('./verbs/model.ts')).runModelRemove,
  },
  {
    name: 'verify',
    help: 'Read models in the store of this machine again and compare them with their hashes',
    arguments: [{ name: '[names...]', help: 'Names of the models (default: all that are there)', suggestions: 'models' }],
    options: [STORE],
    load: async () => (await import('./verbs/model-store.ts')).runVerify,
  },
  {
    name: 'prune',
    help: 'Remove what abandoned downloads have left in the store of this machine for more than a day',
    options: [STORE, { flags: '--dry-run', help: 'Only show what would be removed' }],
    load: async () => (await import('./verbs/model-store.ts')).runPrune,
  },
  {
    name: 'import',
    help: 'Take models of Ollama, LM Studio, llama.cpp or Hugging Face, or GGUF files, into the store of this machine',
    arguments: [{ name: '[files...]', help: 'GGUF files (default: what other tools have on this machine)' }],
    options: [
      { flags: '--from <tool>', help: 'Only the models of this tool', choices: FOREIGN_TOOLS },
      { flags: '--directory <path>', help: 'Where the tool keeps its models (default: where it does by itself)', path: true },
      { flags: '--dry-run', help: 'Only show what would be imported' },
      STORE,
    ],
    examples: ['svcctl model import --dry-run', 'svcctl model import --from ollama', 'svcctl model import ~/models/m-Q4_K_M.gguf'],
    load: async () => (await import('./verbs/model-import.ts')).runImport,
  },
  {
    name: 'fetch',
    help: 'Verify a model in the store of this machine, and download it if it is missing',
    arguments: [
      { name: '<id>', help: 'Id in the catalogue, path of a file in the store, or a name on the Hub such as "hf:owner/repo:Q4_K_M"' },
    ],
    options: [
      STORE,
      {
        flags: '--termination-log <file>',
        help: 'File to write the reason of a failure to (default: /dev/termination-log if it exists)',
        path: true,
      },
    ],
    load: async () => (await import('./verbs/model-fetch.ts')).runModelFetch,
  },
];
