/** System prompt, sampling and presets of the chat, kept in this browser. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { isDefault, NO_SETTINGS, readSaved, writeSaved, type ChatSettings, type SavedSettings } from '../decide/chat-settings.ts';
import { Button } from '../parts/button.tsx';
import { InputField, SelectField, TextAreaField } from '../parts/fields.tsx';
import { P } from '../texts-playground.ts';

const KEY = 'svc.chat-settings';

export interface ChatSettingsState extends SavedSettings {
  change(settings: ChatSettings): void;
  savePreset(name: string): void;
  deletePreset(name: string): void;
}

export function useChatSettings(): ChatSettingsState {
  const [saved, setSaved] = useState(() => readSaved(localStorage.getItem(KEY) ?? ''));
  const keep = (next: SavedSettings): void => {
    setSaved(next);
    try {
      localStorage.setItem(KEY, writeSaved(next));
    } catch {
      // A full storage: the settings last until the reload.
    }
  };
  return {
    ...saved,
    change: (current) => keep({ ...saved, current }),
    savePreset: (name) => keep({ ...saved, presets: new Map([...saved.presets, [name, saved.current]]) }),
    deletePreset: (name) => keep({ ...saved, presets: new Map([...saved.presets].filter(([other]) => other !== name)) }),
  };
}

const NUMBERS = [
  ['temperature', P.temperature, { min: '0', max: '2', step: '0.1' }],
  ['topP', P.topP, { min: '0', max: '1', step: '0.05' }],
  ['maxTokens', P.maxTokens, { min: '1', step: '1' }],
  ['seed', P.seed, { step: '1' }],
] as const;

export function ChatSettingsPanel({ state }: { readonly state: ChatSettingsState }): JSX.Element {
  const { current, change } = state;
  return (
    <details class="chat-settings">
      <summary>
        {P.settings}
        {!isDefault(current) && <span class="tag">{P.changed}</span>}
      </summary>
      <TextAreaField label={P.systemPrompt} rows={3} value={current.system} onValue={(system) => change({ ...current, system })} />
      <div class="fields">
        {NUMBERS.map(([key, name, limits]) => (
          <InputField
            key={key}
            label={name}
            type="number"
            {...limits}
            value={current[key]}
            placeholder={P.modelDefault}
            onValue={(value) => change({ ...current, [key]: value })}
          />
        ))}
      </div>
      <Presets state={state} />
    </details>
  );
}

function Presets({ state: { current, presets, change, savePreset, deletePreset } }: { readonly state: ChatSettingsState }): JSX.Element {
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState('');
  const choose = (next: string): void => {
    setChosen(next);
    change(presets.get(next) ?? NO_SETTINGS);
  };
  return (
    <div class="fields">
      <SelectField
        label={P.preset}
        value={chosen}
        options={[['', P.noPreset], ...[...presets.keys()].map((each) => [each, each] as const)]}
        onValue={choose}
      />
      {chosen !== '' && (
        <Button
          label={P.deletePreset}
          look="quiet"
          onClick={() => {
            deletePreset(chosen);
            setChosen('');
          }}
        />
      )}
      <InputField label={P.presetName} value={name} onValue={setName} />
      <Button
        label={P.savePreset}
        disabled={name.trim() === '' || isDefault(current)}
        onClick={() => {
          savePreset(name.trim());
          setChosen(name.trim());
          setName('');
        }}
      />
    </div>
  );
}
