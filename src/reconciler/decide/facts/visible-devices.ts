/**
 * How a server learns which of several devices it may use: from the variable of its backend's driver, by numbers. Servers use all devices that they see, so
 * this matters only where there are several. Which ones is decided when a server is started, so that the variable is no part of its revision. Pure.
 */
import type { Machine } from '../../../schema/status/hardware.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import { poolsOfBackend, type PoolBytes, type PoolId } from './memory-pools.ts';

type Variables = Readonly<Record<string, string>>;

/**
 * `CUDA_VISIBLE_DEVICES` (CUDA C++ programming guide), `HIP_VISIBLE_DEVICES` (ROCm documentation), `GGML_VK_VISIBLE_DEVICES` (ggml-vulkan.cpp). With CUDA, the
 * numbers follow the PCI addresses only if `CUDA_DEVICE_ORDER` says so.
 */
const VARIABLES: Readonly<Partial<Record<Backend, { readonly name: string; readonly more: Variables }>>> = {
  cuda: { name: 'CUDA_VISIBLE_DEVICES', more: { CUDA_DEVICE_ORDER: 'PCI_BUS_ID' } },
  rocm: { name: 'HIP_VISIBLE_DEVICES', more: {} },
  vulkan: { name: 'GGML_VK_VISIBLE_DEVICES', more: {} },
};

const NAMES: ReadonlySet<string> = new Set(Object.values(VARIABLES).flatMap(({ name, more }) => [name, ...Object.keys(more)]));

/** Whether a variable only says where a server was placed, so that its value is no drift. */
export function saysPlacement(variable: string): boolean {
  return NAMES.has(variable);
}

/** What to add to the environment of a server; nothing where it sees one device at most, or where its slot sets the variable itself. */
export function placementVariables(placement: PoolBytes, machine: Machine | undefined, backend: Backend, env: Variables): Variables {
  const { own } = poolsOfBackend(machine, backend);
  const variables = VARIABLES[backend];
  if (own.length < 2 || variables === undefined || [variables.name, ...Object.keys(variables.more)].some((name) => name in env)) return {};
  const numbers = own.flatMap((id, index) => ((placement[id] ?? 0) > 0 ? [index] : []));
  return numbers.length === 0 ? {} : { [variables.name]: numbers.join(','), ...variables.more };
}

/** The devices that a server was given; undefined where its environment does not say so, or is not known. */
export function devicesGiven(env: Variables | undefined, machine: Machine | undefined, backend: Backend): readonly PoolId[] | undefined {
  const { own } = poolsOfBackend(machine, backend);
  const { name } = VARIABLES[backend] ?? {};
  const numbers = name === undefined ? undefined : env?.[name]?.split(',').map(Number);
  const given = numbers?.flatMap((index) => own[index] ?? []);
  return given === undefined || given.length === 0 ? undefined : given;
}
