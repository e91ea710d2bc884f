package sqe.bridge.exec;

import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import sqe.bridge.plan.Trees;
import sqe.bridge.stream.StreamHub;

/** Counts stages and tasks for each statement, and tells its result which attempts are lost. */
public final class ExecListener extends SparkListener {
  private final Map<Integer, Exec> stages = new ConcurrentHashMap<>(); // by stage

  /** stage id -> tag, of jobs that began when their statement was over; a task may begin when its stage is over, too. */
  private final Map<Integer, String> late = Collections.synchronizedMap(Running.remembered());

  public void onJobStart(SparkListenerJobStart event) {
    for (String tag : tags(event.properties())) {
      Exec statement = Exec.find(tag);
      boolean cancelled = Running.isCancelled(tag);
      if (statement == null && !cancelled) continue;
      for (StageInfo stage : Trees.list(event.stageInfos())) {
        if (statement != null) stages.put(stage.stageId(), statement);
        if (cancelled) late.put(stage.stageId(), tag);
      }
      // A job that began between the cancel and the end of its thread.
      if (cancelled) StreamHub.cancelJobs(tag);
      return;
    }
  }

  private static String[] tags(Properties properties) {
    String tags = properties == null ? null : properties.getProperty("spark.job.tags");
    return tags == null ? new String[0] : tags.split(",");
  }

  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    Exec statement = stages.get(event.stageInfo().stageId());
    if (statement != null) statement.progress.stageStarted(event.stageInfo().numTasks());
  }

  public void onStageCompleted(SparkListenerStageCompleted event) {
    Exec statement = stages.remove(event.stageInfo().stageId());
    if (statement != null) statement.progress.stageEnded();
  }

  public void onTaskStart(SparkListenerTaskStart event) {
    Exec statement = stages.get(event.stageId());
    if (statement != null) statement.progress.taskStarted();
    String tag = statement != null ? statement.tag : late.get(event.stageId());
    if (tag != null && event.taskInfo() != null) Watchdog.taskStarted(event.taskInfo().taskId(), tag);
  }

  public void onTaskEnd(SparkListenerTaskEnd event) {
    // A task may go on for long after its stage is over.
    if (event.taskInfo() != null) Watchdog.taskEnded(event.taskInfo().taskId());
    Exec statement = stages.get(event.stageId());
    if (statement == null || event.taskInfo() == null) return;
    boolean successful = event.taskInfo().successful();
    statement.progress.taskEnded(successful);
    if (!successful) statement.sink.lost(event.taskInfo().partitionId(), event.taskInfo().taskId());
  }
}
