/** The Hardware page: memory and its use, devices, providers, and the pods of a cluster. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { otherMachines } from '../decide/other-machines.ts';
import { drawAdmission, memoriesOf, type DeviceMemory } from '../decide/memory-shares.ts';
import { hashOf } from '../decide/route.ts';
import { isEnabled } from '../decide/slot-facts.ts';
import type { Client } from '../io/client.ts';
import { AdmissionChart } from './admission-chart.tsx';
import { ClusterPanels } from '../slots/pods.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { A } from '../texts-activity.ts';
import { PAGE_NAMES } from '../texts.ts';
import type { Explanation, Hardware, Providers, Slot } from '../types.ts';

const EVERY_SECONDS = 10;
/** Each explanation costs a request. */
const MAX_EXPLAINED = 40;
/** Number of `--share-N` colours in the style sheet. */
const COLORS = 6;

export function HardwarePage(): JSX.Element {
  const { client, store, now } = useApp();
  const all = (store.names.value ?? []).flatMap((name) => store.of(name)?.slot.value ?? []);
  const slots = all.filter(hasMemory);
  const key = slots.map(({ name, status }) => `${name} ${status.state}`).join();
  const round = Math.floor(now.value / 1000 / EVERY_SECONDS);
  const loaded = useLoaded(async (signal) => readAll(client, slots, signal), [key, round]);
  const value = loaded.kind === 'done' ? loaded.value : undefined;
  const decision = value?.explanations.find(({ memory }) => memory !== null && drawAdmission(memory) !== undefined)?.memory;
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES.hardware}</h1>
        {value?.hardware.cpu !== null && value?.hardware.cpu !== undefined && <Processor cpu={value.hardware.cpu} />}
      </div>
      <LoadStatus loaded={loaded} />
      {value !== undefined && (
        <>
          {value.hardware.source === 'none' && <p class="note">{A.cluster}</p>}
          <ClusterPanels />
          {value.hardware.recording !== null && (
            <p class="note">
              {A.recording}: {value.hardware.recording.about}
            </p>
          )}
          {memoriesOf(value.hardware, value.explanations).map((memory) => (
            <MemoryPanel key={memory.memory} memory={memory} hardware={value.hardware} />
          ))}
          {decision !== null && decision !== undefined && (
            <div class="panel">
              <AdmissionChart memory={decision} />
            </div>
          )}
          <Devices hardware={value.hardware} />
          <OtherMachines slots={all} />
          <ProviderList providers={value.providers} />
        </>
      )}
    </>
  );
}

function hasMemory(slot: Slot): boolean {
  return isEnabled(slot) && slot.status.memory_bytes !== null;
}

async function readAll(client: Client, slots: readonly Slot[], signal: AbortSignal) {
  const explain = (name: string) => client.fetchJson<Explanation>(`/api/slots/${encodeURIComponent(name)}/explain`, { signal });
  const [hardware, providers, answers] = await Promise.all([
    client.fetchJson<Hardware>('/api/hardware', { signal }),
    client.fetchJson<Providers>('/api/providers', { signal }),
    // A slot may have been removed meanwhile.
    Promise.allSettled(slots.slice(0, MAX_EXPLAINED).map(({ name }) => explain(name))),
  ]);
  const explanations = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  return { hardware, providers: providers.providers, explanations };
}

function Processor({ cpu }: { readonly cpu: NonNullable<Hardware['cpu']> }): JSX.Element {
  return (
    <p>
      {cpu.model ?? cpu.architecture} · {cpu.cores !== null && `${cpu.cores} ${A.cores}, `}
      {cpu.threads} {A.threads}
    </p>
  );
}

function MemoryPanel({ memory, hardware }: { readonly memory: DeviceMemory; readonly hardware: Hardware }): JSX.Element {
  const device = hardware.devices.find(({ id }) => id === memory.memory);
  const title = device === undefined ? A.systemMemory : `${device.id}: ${device.name ?? device.vendor}`;
  const share = (bytes: number): string => `${(bytes / memory.totalBytes) * 100}%`;
  return (
    <section class="panel">
      <div class="row">
        <h2>{title}</h2>
        <dl class="inline-facts">
          <Amount bytes={memory.totalBytes} name={A.total} />
          {memory.usedBytes !== undefined && <Amount bytes={memory.usedBytes} name={A.used} />}
          <Amount bytes={memory.reservedBytes} name={A.reserved} />
          <Amount bytes={memory.freeBytes} name={A.free} />
        </dl>
      </div>
      <div class="memory-bar tall" aria-hidden="true">
        {memory.slots.map(({ slot, bytes }, index) => (
          <span key={slot} class="share" style={{ width: share(bytes), ...colourOf(index) }} />
        ))}
        <span class="others" style={{ width: share(memory.othersBytes) }} />
      </div>
      <ul class="shares">
        {memory.slots.length === 0 && <li>{A.noneReserved}</li>}
        {memory.slots.map(({ slot, bytes }, index) => (
          <li key={slot} style={colourOf(index)}>
            <a href={hashOf({ page: 'slots', slot })}>{slot}</a> {formatBytes(bytes)}
          </li>
        ))}
        <li class="others">
          {A.otherPrograms} {formatBytes(memory.othersBytes)}
        </li>
        <li class="free">
          {A.freeMemory} {formatBytes(memory.freeBytes)}
        </li>
      </ul>
    </section>
  );
}

function colourOf(index: number): { readonly '--share-color': string } {
  return { '--share-color': `var(--share-${index % COLORS})` };
}

function Amount({ bytes, name }: { readonly bytes: number; readonly name: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{formatBytes(bytes)}</dd>
    </div>
  );
}

function Devices({ hardware }: { readonly hardware: Hardware }): JSX.Element | null {
  if (hardware.source === 'none') return null;
  return (
    <section class="panel">
      <h2>{A.devices}</h2>
      {hardware.devices_hidden !== null && <p class="note">{hardware.devices_hidden}</p>}
      {hardware.devices.length === 0 && hardware.devices_hidden === null && <p class="why">{A.noDevices}</p>}
      {hardware.devices.length > 0 && (
        <ul class="conditions">
          {hardware.devices.map((device) => (
            <li key={device.id}>
              <strong>
                {device.id} {device.name ?? device.vendor}
              </strong>{' '}
              {device.backends.map((backend) => (
                <span key={backend} class="tag">
                  {backend}
                </span>
              ))}
              <p>
                {[
                  device.driver === null ? '' : `${A.driver} ${device.driver}`,
                  device.architecture === null ? '' : `${A.architecture} ${device.architecture}`,
                  device.unified ? A.unified : '',
                ]
                  .filter((text) => text !== '')
                  .join(' · ')}
              </p>
              {device.unavailable.map(({ backend, reason }) => (
                <p key={backend}>
                  {backend}: {A.unavailable}. {reason}
                </p>
              ))}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function OtherMachines({ slots }: { readonly slots: readonly Slot[] }): JSX.Element | null {
  const machines = otherMachines(slots);
  if (machines.length === 0) return null;
  return (
    <section class="panel">
      <h2>{A.otherMachines}</h2>
      <ul class="conditions">
        {machines.map(({ address, slots: used }) => (
          <li key={address}>
            <strong>{address}</strong>
            {used.map(({ name, status }) => (
              <p key={name}>
                <a href={hashOf({ page: 'slots', slot: name })}>{name}</a> {status.model ?? ''} <span class="tag">{status.state}</span>
              </p>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ProviderList({ providers }: { readonly providers: Providers['providers'] }): JSX.Element {
  return (
    <section class="panel">
      <h2>{A.providers}</h2>
      <ul class="conditions">
        {providers.map(({ kind, serves, available, reason }) => (
          <li key={kind}>
            <strong>{kind}</strong> <span class={available ? 'tag good' : 'tag bad'}>{available ? A.available : A.unavailable}</span>{' '}
            {serves.join(', ')}
            {reason !== '' && <p>{reason}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}
