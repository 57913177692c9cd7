import { expect, test } from "vitest";
import { conversationId } from "./conversation-id.ts";

test("is a UUIDv5, and the same for ever", () => {
  expect(conversationId({ tenantId: "default", key: "user:42", generation: 0 })).toBe(
    "160f2527-895d-5799-8b9b-9172b51a2691",
  );
  expect(conversationId({ tenantId: "default", key: "user:42", generation: 1 })).toBe(
    "e2648dd6-4f66-59ce-92ba-8fc1534a522d",
  );
});

test("is another for any other tenant, key or generation", () => {
  const names = [
    { tenantId: "default", key: "a", generation: 0 },
    { tenantId: "default", key: "a", generation: 1 },
    { tenantId: "default", key: "a", generation: 11 },
    { tenantId: "default", key: "a1", generation: 0 },
    { tenantId: "default", key: "a1", generation: 1 },
    { tenantId: "defaulta", key: "1", generation: 0 },
    { tenantId: "ten_1", key: "a", generation: 0 },
  ];
  const ids = names.map(conversationId);
  expect(new Set(ids).size).toBe(names.length);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("a UUID stands for itself in the default tenant alone, so that no other tenant can name its conversations", () => {
  const key = "160f2527-895d-5799-8b9b-9172b51a2691";
  for (const generation of [0, 3]) {
    expect(conversationId({ tenantId: "default", key, generation })).toBe(key);
    const others = conversationId({ tenantId: "ten_1", key, generation });
    expect(others).not.toBe(key);
    expect(others).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  }
});
