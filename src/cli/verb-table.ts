/** All verbs of `svcctl` as data. The files in `verbs/` implement them. */
import { CONDITION_TYPES, SLOT_STATES } from '../schema/status/slot-status.ts';
import { BACKENDS, PROVIDER_KIND_NAMES } from '../schema/slot/provider-kinds.ts';
import { MODEL_VERBS } from './model-verb-table.ts';
import { OUTPUTS } from './output/output.ts';
import { PROFILE_VERBS } from './profile-verb-table.ts';
import { TOKEN_VERBS } from './token-verb-table.ts';
import { TOOLBOX_VERBS } from './toolbox-verb-table.ts';
import type { Verb, VerbArgument, VerbGroup, VerbOption } from './verb.ts';

export const GLOBAL_OPTIONS: readonly VerbOption[] = [
  { flags: '--server <url>', help: 'URL of the service (default: $SVCCTL_SERVER, $SVC_LISTEN or http://127.0.0.1:8080)' },
  {
    flags: '--token-file <path>',
    help: 'File that contains the token (default: $SVCCTL_TOKEN, or the file named by $SVCCTL_TOKEN_FILE)',
    path: true,
  },
  { flags: '--context <name>', help: 'Kubeconfig context of the cluster in which the service runs (default: $SVCCTL_CONTEXT)' },
  { flags: '-n, --namespace <name>', help: 'Namespace of the service in the cluster (default: $SVCCTL_NAMESPACE, or that of the context)' },
  { flags: '--kubeconfig <path>', help: 'Path of the kubeconfig (default: $KUBECONFIG or ~/.kube/config)', path: true },
];

const OUTPUT_WITH_NAME: VerbOption = {
  flags: '-o, --output <format>',
  help: 'Output format',
  default: 'table',
  choices: [...OUTPUTS, 'name'],
};
const OUTPUT: VerbOption = { flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: OUTPUTS };
const TIMEOUT: VerbOption = { flags: '--timeout <duration>', help: 'How long to wait, such as 30s or 5m', default: '5m' };
const WAIT: readonly VerbOption[] = [{ flags: '--wait', help: 'Wait until the change has taken effect' }, TIMEOUT];
const FILE: VerbOption = {
  flags: '-f, --file <path>',
  help: 'File or directory with slots, in TOML or as SlotSpec resources in YAML or JSON; "-" reads standard input',
  path: true,
};
const REQUIRED_FILE: VerbOption = { ...FILE, required: true };
const PRUNE_PREVIEW: VerbOption = { flags: '--prune', help: 'Treat slots that are not in the files as removed' };
const SLOT: VerbArgument = { name: '<slot>', help: 'Name of the slot', suggestions: 'slots' };
const LOG_OPTIONS: readonly VerbOption[] = [
  { flags: '-f, --follow', help: 'Keep printing new lines' },
  { flags: '--tail <lines>', help: 'Number of lines to print from the end of the log', default: '200' },
];
const GOALS: readonly string[] = [
  ...CONDITION_TYPES.map((type) => `condition=${type}`),
  ...SLOT_STATES.map((state) => `state=${state}`),
  'delete',
];

const SLOT_VERBS: readonly Verb[] = [
  {
    name: 'load',
    help: 'Enable a slot so that it runs, optionally with another model',
    arguments: [SLOT],
    options: [{ flags: '--model <id>', help: 'New default model of the slot', suggestions: 'models' }, ...WAIT],
    examples: ['svcctl slot load primary', 'svcctl slot load primary --model demo-owl --wait'],
    load: async () => (await import('./verbs/slot.ts')).runLoad,
  },
  {
    name: 'unload',
    help: 'Disable a slot so that it stops',
    arguments: [SLOT],
    options: WAIT,
    load: async () => (await import('./verbs/slot.ts')).runUnload,
  },
  {
    name: 'restart',
    help: 'Replace the workload of a slot, even if the slot is stalled',
    arguments: [SLOT],
    options: WAIT,
    load: async () => (await import('./verbs/slot.ts')).runRestart,
  },
  {
    name: 'create',
    help: 'Create a slot',
    arguments: [SLOT],
    options: [
      { flags: '--model <id>', help: 'Default model', required: true, suggestions: 'models' },
      {
        flags: '--provider <kind>',
        help: 'Provider (default: that of the built-in slot of this name, or that of the model)',
        suggestions: PROVIDER_KIND_NAMES,
      },
      {
        flags: '--backend <name>',
        help: 'Backend to compute on (default: that of the provider, or the best one that the machine can run)',
        suggestions: BACKENDS,
      },
      { flags: '--context-length <tokens>', help: 'Context length in tokens' },
      { flags: '--on-demand', help: 'Load the slot at its first request' },
      { flags: '--disabled', help: 'Create the slot without starting it' },
      ...WAIT,
    ],
    examples: ['svcctl slot create primary --model demo-fox --wait', 'svcctl slot create small --model demo-owl --on-demand'],
    load: async () => (await import('./verbs/slot.ts')).runCreate,
  },
  {
    name: 'delete',
    help: 'Delete slots',
    arguments: [{ ...SLOT, name: '<slots...>', help: 'Names of the slots' }],
    options: WAIT,
    load: async () => (await import('./verbs/slot.ts')).runDelete,
  },
  {
    name: 'logs',
    help: 'Print the output of a slot’s workload',
    arguments: [SLOT],
    options: LOG_OPTIONS,
    load: async () => (await import('./verbs/slot-logs.ts')).runLogs,
  },
];

export const VERBS: readonly (Verb | VerbGroup)[] = [
  {
    name: 'serve',
    help: 'Run the gateway and the controller; settings come from SVC_* variables',
    options: [{ flags: '--checkout', help: 'Keep configuration, models and state in the directory ".svc" of this checkout' }],
    load: async () => (await import('./verbs/serve.ts')).runServe,
  },
  {
    name: 'get',
    help: 'List slots, models, pulls, providers or pods',
    arguments: [
      {
        name: '<what>',
        help: 'What to list: slots, models, pulls, providers or, in a cluster, pods; or one of them, as slot/NAME',
        suggestions: ['slots', 'models', 'pulls', 'providers', 'pods'],
      },
      { name: '[names...]', help: 'Names to list (default: all)', suggestions: 'slots' },
    ],
    options: [OUTPUT_WITH_NAME, { flags: '-w, --watch', help: 'Then print each line again when it changes' }],
    examples: ['svcctl get slots', 'svcctl get slot/primary -o yaml', 'svcctl get slots --watch', 'svcctl get models -o name'],
    load: async () => (await import('./verbs/get.ts')).runGet,
  },
  {
    name: 'wait',
    help: 'Wait until slots reach a condition or a state',
    arguments: [{ name: '<slot...>', help: 'Slots, each as slot/NAME', suggestions: 'slot/NAME' }],
    options: [
      {
        flags: '--for <goal>',
        help: 'What to wait for: condition=TYPE, condition=TYPE=False, state=STATE or delete',
        default: 'condition=UpToDate',
        suggestions: GOALS,
      },
      TIMEOUT,
    ],
    examples: ['svcctl wait slot/primary', 'svcctl wait slot/primary slot/embed --for condition=Ready --timeout 2m'],
    load: async () => (await import('./verbs/wait.ts')).runWait,
  },
  {
    name: 'explain',
    help: 'Explain why a slot is in its current state',
    arguments: [SLOT],
    load: async () => (await import('./verbs/explain.ts')).runExplain,
  },
  {
    name: 'fit',
    help: 'Say whether a model would fit into the memory of the machine; writes nothing, and exits with 1 if it would not',
    arguments: [{ name: '<model>', help: 'Name of the model, as in a slot', suggestions: 'models' }],
    options: [
      { flags: '--context <tokens>', help: 'Context of the model (default: its own)' },
      { flags: '--backend <name>', help: 'What it would compute with (default: the best that the machine can run)', choices: BACKENDS },
      OUTPUT,
    ],
    examples: ['svcctl fit demo-owl --context 8192', 'svcctl fit hf:unsloth/Qwen3-4B-Instruct-2507-GGUF'],
    load: async () => (await import('./verbs/fit.ts')).runFit,
  },
  {
    name: 'timeline',
    help: 'Show what happened to a slot, and why',
    arguments: [SLOT],
    options: [OUTPUT, { flags: '--limit <count>', help: 'Number of newest entries to show', default: '50' }],
    load: async () => (await import('./verbs/timeline.ts')).runTimeline,
  },
  {
    name: 'logs',
    help: 'Print the output of a slot’s workload, as "slot logs" does',
    arguments: [SLOT],
    options: LOG_OPTIONS,
    examples: ['svcctl logs primary', 'svcctl logs primary --follow --tail 20'],
    load: async () => (await import('./verbs/slot-logs.ts')).runLogs,
  },
  { name: 'slot', help: 'Load, unload, restart, create and delete slots, and read their logs', verbs: SLOT_VERBS },
  {
    name: 'plan',
    help: 'Show what the controller would do; exits with 2 if there is anything to do',
    options: [FILE, PRUNE_PREVIEW, OUTPUT],
    examples: ['svcctl plan', 'svcctl plan -f primary.toml'],
    load: async () => (await import('./verbs/plan.ts')).runPlan,
  },
  {
    name: 'diff',
    help: 'Compare files with the slots of the service; exits with 2 if they differ',
    options: [REQUIRED_FILE, PRUNE_PREVIEW],
    examples: ['svcctl diff -f slots/'],
    load: async () => (await import('./verbs/diff.ts')).runDiff,
  },
  {
    name: 'apply',
    help: 'Create and update slots from files',
    options: [
      REQUIRED_FILE,
      { flags: '--prune', help: 'Delete slots that are not in the files' },
      { flags: '--dry-run', help: 'Check everything and change nothing' },
      OUTPUT,
    ],
    examples: ['svcctl apply -f slots/', 'svcctl apply -f slots/ --prune --dry-run', 'cat slot.yaml | svcctl apply -f -'],
    load: async () => (await import('./verbs/apply.ts')).runApply,
  },
  { name: 'profile', help: 'Save sets of slots under names, and switch from one to another', verbs: PROFILE_VERBS },
  {
    name: 'validate',
    help: 'Check files without contacting the service',
    options: [REQUIRED_FILE],
    examples: ['svcctl validate -f primary.toml', 'svcctl validate -f slots/'],
    load: async () => (await import('./verbs/validate.ts')).runValidate,
  },
  {
    name: 'convert',
    help: 'Convert slots between TOML files and SlotSpec resources',
    options: [
      REQUIRED_FILE,
      { flags: '--to <format>', help: 'Target format', required: true, choices: ['crd', 'toml'] },
      { flags: '--output-dir <directory>', help: 'Write one file per slot to this directory (default: standard output)', path: true },
    ],
    examples: ['svcctl convert -f slots/ --to crd', 'svcctl convert -f slots.yaml --to toml --output-dir slots'],
    load: async () => (await import('./verbs/convert.ts')).runConvert,
  },
  { name: 'model', help: 'Pull, list, verify and remove models', verbs: MODEL_VERBS },
  { name: 'token', help: 'Create, list and revoke tokens for the API', verbs: TOKEN_VERBS },
  { name: 'toolbox', help: 'List, build, pull and verify the images in which slots run', verbs: TOOLBOX_VERBS },
  {
    name: 'hardware',
    help: 'Show CPU, memory, GPUs and NPUs of the machine that the service runs on',
    arguments: [{ name: '[record]', help: '"record": write a recording of this machine to standard output instead', choices: ['record'] }],
    options: [{ flags: '-f, --file <path>', help: 'Show this recording instead of asking the service', path: true }, OUTPUT],
    examples: ['svcctl hardware', 'svcctl hardware record > machine.json', 'svcctl hardware -f machine.json'],
    load: async () => (await import('./verbs/hardware.ts')).runHardware,
  },
  {
    name: 'doctor',
    help: 'Look for problems on this machine or, with --context or -n, in a cluster',
    options: [{ flags: '--checkout', help: 'Check the directory ".svc" of this checkout, which "npm start" uses' }, OUTPUT],
    load: async () => (await import('./verbs/doctor.ts')).runDoctor,
  },
  {
    name: 'completion',
    help: 'Print a completion script for a shell',
    examples: ['source <(svcctl completion bash)', 'svcctl completion fish | source'],
    arguments: [{ name: '<shell>', help: 'Shell to write the script for', choices: ['bash', 'zsh', 'fish'] }],
    load: async () => (await import('./verbs/completion.ts')).createCompletion(VERBS, GLOBAL_OPTIONS),
  },
];
